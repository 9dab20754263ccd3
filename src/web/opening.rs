//! A load in progress: the options, the progress, and the device that will run the model.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::features;
use super::options::LoadOptions;
use super::progress::Reporter;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::session::{Progress, Session};
use crate::source::{Reader, Source};
use crate::transfer::Phase;

/// A load in progress.
pub(super) struct Opening<'a> {
    pub(super) options: &'a LoadOptions,
    pub(super) reporter: &'a Rc<Reporter>,
    /// The device, which may still be opening, until an attempt takes it.
    gpu: RefCell<Option<LocalBoxFuture<'static, Result<Gpu>>>>,
    /// Work that begins once the model can be used.
    behind: RefCell<Option<Behind>>,
}

/// The storing of a model that can be used already. Gives whether all of it is stored in the end.
pub(super) type Behind = LocalBoxFuture<'static, bool>;

impl<'a> Opening<'a> {
    /// Begins to open a device. So the likeliest failure comes before a gigabyte is downloaded. In
    /// a new browser opening takes as long as fetching the file's header.
    ///
    /// Errors: `no-webgpu`.
    pub(super) fn new(options: &'a LoadOptions, reporter: &'a Rc<Reporter>) -> Result<Self> {
        require_webgpu()?;
        features::ask();
        let options_of_gpu = options.gpu.clone();
        let (task, gpu) = async move { Gpu::open(&options_of_gpu).await }.remote_handle();
        // The device opens while the load waits for something else.
        spawn_local(task);
        let gpu = RefCell::new(Some(gpu.boxed_local()));
        Ok(Self { options, reporter, gpu, behind: RefCell::default() })
    }

    /// Loads a session. `counted` says that the source reports its bytes itself. `known` is called
    /// once the header has been read, if it describes a model that can run here.
    ///
    /// Can be called again if it fails.
    pub(super) async fn session<S: Source>(
        &self,
        reader: &mut Reader<S>,
        counted: bool,
        known: impl Fn(),
    ) -> Result<Session> {
        let mut told = |progress| match progress {
            Progress::Header => known(),
            progress => self.reporter.session(!counted, progress),
        };
        Session::load(self.gpu(), reader, &self.options.session, &mut told).await
    }

    /// Does `work` later, once the model can be used.
    pub(super) fn do_behind(&self, work: Behind) {
        self.behind.replace(Some(work));
    }

    /// Reports that the model can be used, and begins the work for that time.
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

    /// The device that is opening. Further attempts open a new one.
    async fn gpu(&self) -> Result<Gpu> {
        let first = self.gpu.take();
        match first {
            Some(gpu) => gpu.await,
            None => Gpu::open(&self.options.gpu).await,
        }
    }
}

/// Fails if the browser has no WebGPU. The lack of an adapter is another error.
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
