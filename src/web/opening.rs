//! A load in progress: the options, the progress, and the device that will run the model.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::features;
use super::options::LoadOptions;
use super::progress::Reporter;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::session::Session;
use crate::source::{Reader, Source};
use crate::transfer::Phase;

/// A load in progress.
pub(super) struct Opening<'a> {
    pub(super) options: &'a LoadOptions,
    pub(super) reporter: &'a Rc<Reporter>,
    /// The device, until an attempt takes it.
    gpu: RefCell<Option<Gpu>>,
    /// What is to be done once the model can be used.
    behind: RefCell<Option<Behind>>,
}

/// The storing of a model that can be used already. Resolves to whether all of it is stored.
pub(super) type Behind = LocalBoxFuture<'static, bool>;

impl<'a> Opening<'a> {
    /// Opens a device, so that the likeliest failure comes before a gigabyte is downloaded.
    ///
    /// Errors: `no-webgpu`, and those of [`Gpu::open`].
    pub(super) async fn new(options: &'a LoadOptions, reporter: &'a Rc<Reporter>) -> Result<Self> {
        let gpu = open_gpu(options).await?;
        Ok(Self { options, reporter, gpu: RefCell::new(Some(gpu)), behind: RefCell::default() })
    }

    /// Loads a session. `counted`: the source reports its bytes itself.
    ///
    /// Can be called again if it fails.
    pub(super) async fn session<S: Source>(
        &self,
        reader: &mut Reader<S>,
        counted: bool,
    ) -> Result<Session> {
        let mut told = |progress| self.reporter.session(!counted, progress);
        Session::load(self.gpu().await?, reader, &self.options.session, &mut told).await
    }

    /// Does `work` once the model can be used.
    pub(super) fn do_behind(&self, work: Behind) {
        self.behind.replace(Some(work));
    }

    /// The model can be used: tells so, and does what is left to do.
    pub(super) fn ready(self) {
        self.reporter.phase(Phase::Ready);
        if let Some(behind) = self.behind.take() {
            let reporter = Rc::clone(self.reporter);
            reporter.phase(Phase::Storing);
            spawn_local(async move {
                let is_stored = behind.await;
                reporter.phase(if is_stored { Phase::Stored } else { Phase::Ready });
            });
        }
    }

    /// The first device at first, a new one for each further attempt.
    async fn gpu(&self) -> Result<Gpu> {
        let first = self.gpu.take();
        match first {
            Some(gpu) => Ok(gpu),
            None => open_gpu(self.options).await,
        }
    }
}

async fn open_gpu(options: &LoadOptions) -> Result<Gpu> {
    require_webgpu()?;
    features::ask();
    Gpu::open(&options.gpu).await
}

/// Distinguishes a browser without WebGPU from one without an adapter.
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
