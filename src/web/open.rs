//! From a source and options to a loaded session.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{ArrayBuffer, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, ReadableStream, Request};

use super::blob::{ArraySource, BlobSource};
use super::error::bad_option;
use super::options::LoadOptions;
use super::progress::{Meter, Phase};
use super::remote::{self, Address};
use super::stream;
use super::subgroups;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::session::Session;
use crate::source::{Reader, Source};

/// Loads a model from whatever the page has.
pub(super) async fn open(
    source: &JsValue,
    options: &LoadOptions,
    meter: &Rc<Meter>,
) -> Result<Session> {
    // The likeliest failure first, before a gigabyte is fetched for nothing.
    let gpu = open_gpu(options).await?;
    let opening = Opening { options, meter, gpu: RefCell::new(Some(gpu)) };
    let session = if let Some(blob) = source.dyn_ref::<Blob>() {
        opening.again(BlobSource::new(blob.clone())).await
    } else if let Some(buffer) = source.dyn_ref::<ArrayBuffer>() {
        opening.again(ArraySource::new(Uint8Array::new(buffer))).await
    } else if let Some(bytes) = source.dyn_ref::<Uint8Array>() {
        opening.again(ArraySource::new(bytes.clone())).await
    } else if let Some(stream) = source.dyn_ref::<ReadableStream>() {
        opening.stream(stream).await
    } else {
        remote::load(&opening, &address(source)?).await
    }?;
    meter.ready();
    Ok(session)
}

fn address(source: &JsValue) -> Result<Address> {
    match (source.as_string(), source.dyn_ref::<Request>()) {
        (Some(url), _) => Ok(Address::from_url(&url)),
        (None, Some(request)) => Ok(Address::from_request(request)),
        (None, None) => Err(bad_option(
            "source",
            "must be a URL, Request, Blob, ArrayBuffer, Uint8Array or ReadableStream",
        )),
    }
}

/// A load under way.
pub(super) struct Opening<'a> {
    pub(super) options: &'a LoadOptions,
    pub(super) meter: &'a Rc<Meter>,
    gpu: RefCell<Option<Gpu>>,
}

impl Opening<'_> {
    /// The device opened at first; for a second attempt, a new one.
    async fn gpu(&self) -> Result<Gpu> {
        let first = self.gpu.take();
        match first {
            Some(gpu) => Ok(gpu),
            None => open_gpu(self.options).await,
        }
    }

    /// Loads from a source; `counted` says that it counts its bytes itself.
    pub(super) async fn session<S: Source>(
        &self,
        reader: &mut Reader<S>,
        counted: bool,
    ) -> Result<Session> {
        let mut told = |progress| self.meter.session(!counted, progress);
        Session::load(self.gpu().await?, reader, &self.options.session, &mut told).await
    }

    /// A source that can be read again, so that its hash is known before it is used.
    async fn again<S: Source>(&self, mut source: S) -> Result<Session> {
        if let Some(integrity) = &self.options.integrity {
            integrity.check(&mut source).await?;
        }
        self.meter.begin(Phase::Upload, source.len(), 0, 1.0);
        self.session(&mut Reader::new(source), false).await
    }

    /// A stream of the page's: its length is anyone's guess, and the head of a model needs it.
    async fn stream(&self, stream: &ReadableStream) -> Result<Session> {
        self.meter.begin(Phase::Download, 0, 0, 0.8);
        let blob = stream::collect(stream, self.meter).await?;
        self.again(BlobSource::new(blob)).await
    }
}

async fn open_gpu(options: &LoadOptions) -> Result<Gpu> {
    require_webgpu()?;
    subgroups::ask();
    Gpu::open(&options.gpu).await
}

/// Tells a browser without WebGPU from one without an adapter.
fn require_webgpu() -> Result<()> {
    let global = js_sys::global();
    let get = |object: &JsValue, name: &str| {
        Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
    };
    if !get(&get(&global, "navigator"), "gpu").is_undefined() {
        return Ok(());
    }
    Err(Error::NoWebGpu(if get(&global, "isSecureContext").is_falsy() {
        "the page is not a secure context: WebGPU needs https or localhost".into()
    } else {
        "navigator.gpu is missing".into()
    }))
}
