//! From a source and options to a loaded session.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{ArrayBuffer, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, ReadableStream, Request};

use super::blob::{ArraySource, BlobSource};
use super::error::bad_option;
use super::fetch::{Address, Download, Length};
use super::integrity::Hasher;
use super::log::warn;
use super::options::{CacheMode, LoadOptions};
use super::progress::{Meter, Phase};
use super::storage::{Storage, StoredSource};
use super::stream::{Chunks, StreamSource};
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
        opening.again(BlobSource(blob.clone()), Phase::Upload).await
    } else if let Some(buffer) = source.dyn_ref::<ArrayBuffer>() {
        opening.again(ArraySource(Uint8Array::new(buffer)), Phase::Upload).await
    } else if let Some(bytes) = source.dyn_ref::<Uint8Array>() {
        opening.again(ArraySource(bytes.clone()), Phase::Upload).await
    } else if let Some(stream) = source.dyn_ref::<ReadableStream>() {
        opening.stream(stream).await
    } else {
        opening.address(&address(source)?).await
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

struct Opening<'a> {
    options: &'a LoadOptions,
    meter: &'a Rc<Meter>,
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

    /// Loads from a source; `phase` is what its bytes count as, `None` if it counts them itself.
    async fn session<S: Source>(
        &self,
        reader: &mut Reader<S>,
        phase: Option<Phase>,
    ) -> Result<Session> {
        let mut told = |progress| self.meter.session(phase, progress);
        Session::load(self.gpu().await?, reader, &self.options.session, &mut told).await
    }

    /// A source that can be read again, so that its hash is known before it is used.
    async fn again<S: Source>(&self, mut source: S, phase: Phase) -> Result<Session> {
        if let Some(integrity) = &self.options.integrity {
            integrity.check(&mut source).await?;
        }
        self.session(&mut Reader::new(source), Some(phase)).await
    }

    /// A stream of the page's: its length is anyone's guess, and the head of a model needs it.
    async fn stream(&self, stream: &ReadableStream) -> Result<Session> {
        let what = "the stream".to_owned();
        let mut chunks = Chunks::new(stream, what, 0, Rc::clone(self.meter), None)?;
        let blob = chunks.collect().await?;
        self.again(BlobSource(blob), Phase::Upload).await
    }

    async fn address(&self, address: &Address) -> Result<Session> {
        let cache = if address.is_lasting() { self.options.cache } else { CacheMode::Off };
        let storage = match cache {
            CacheMode::Off => None,
            _ => match Storage::open().await {
                Ok(storage) => Some(storage),
                Err(error) => {
                    warn(&format!("loading without storage: {error}"));
                    None
                }
            },
        };
        if let (Some(storage), CacheMode::Use | CacheMode::Only) = (&storage, cache)
            && let Some(file) = self.stored(storage, &address.url).await
        {
            return self.again(file, Phase::Cache).await;
        }
        if self.options.cache == CacheMode::Only && address.is_lasting() {
            return Err(Error::NotCached { url: address.url.clone() });
        }
        self.download(address, storage.as_ref()).await
    }

    async fn stored(&self, storage: &Storage, url: &str) -> Option<StoredSource> {
        match storage.find(url).await {
            Ok(file) => Some(StoredSource::new(storage.clone(), file?)),
            Err(error) => {
                warn(&format!("the stored model cannot be read: {error}"));
                None
            }
        }
    }

    /// From the network to the GPU and into storage, piece by piece.
    async fn download(&self, address: &Address, storage: Option<&Storage>) -> Result<Session> {
        let (length, chunks) = self.begin(address, storage).await?;
        let (Length::Known(bytes) | Length::Claimed(bytes)) = length else {
            return self.collect(chunks).await;
        };
        let mut reader = Reader::new(StreamSource::new(chunks, bytes));
        let loaded = self.session(&mut reader, None).await;
        let mut chunks = reader.into_inner().into_chunks();
        if matches!(loaded, Err(Error::BadGguf(_) | Error::Network { .. }))
            && length == Length::Claimed(bytes)
            && chunks.differs(bytes).await
        {
            drop(chunks);
            let (_, chunks) = self.begin(address, storage).await?;
            return self.collect(chunks).await;
        }
        self.settle(loaded, chunks, length).await
    }

    async fn begin(
        &self,
        address: &Address,
        storage: Option<&Storage>,
    ) -> Result<(Length, Chunks)> {
        let download = Download::begin(address, storage.is_some(), Rc::clone(self.meter)).await?;
        let Download { mut chunks, length, etag, last_modified } = download;
        chunks.hasher = self.options.integrity.as_ref().map(|_| Hasher::default());
        if let Some(storage) = storage {
            match storage.create(&address.url, etag, last_modified).await {
                Ok(writer) => chunks.writer = Some(writer),
                Err(error) => warn(&format!("the model is not stored: {error}")),
            }
        }
        Ok((length, chunks))
    }

    /// A download of unknown length: first all of it, then the model.
    async fn collect(&self, mut chunks: Chunks) -> Result<Session> {
        let loaded = match chunks.collect().await {
            Ok(blob) => self.session(&mut Reader::new(BlobSource(blob)), Some(Phase::Upload)).await,
            Err(error) => Err(error),
        };
        self.settle(loaded, chunks, Length::Unknown).await
    }

    /// Stores the file if its model has loaded and it is what was promised; else deletes it, before
    /// the failure is told: the worker may end with that.
    async fn settle(
        &self,
        loaded: Result<Session>,
        mut chunks: Chunks,
        length: Length,
    ) -> Result<Session> {
        let result = match loaded {
            Ok(session) => self.verify(&mut chunks, length).await.map(|()| session),
            Err(error) => Err(error),
        };
        match (&result, chunks.writer.take()) {
            (Ok(_), Some(writer)) => writer.commit().await,
            (Err(_), Some(writer)) => writer.discard().await,
            (_, None) => {}
        }
        result
    }

    /// Reads what the model did not need, so that hash and storage have seen the whole file.
    async fn verify(&self, chunks: &mut Chunks, length: Length) -> Result<()> {
        let received = chunks.drain().await?;
        if let Length::Known(bytes) = length
            && received < bytes
        {
            return Err(chunks.ended_early(received, bytes));
        }
        match (&self.options.integrity, chunks.hasher.take()) {
            (Some(integrity), Some(hasher)) => integrity.compare(hasher),
            _ => Ok(()),
        }
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
