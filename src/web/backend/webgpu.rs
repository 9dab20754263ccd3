//! The GPU, by WebGPU.

use std::cell::RefCell;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};
use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Wishes, features};
use crate::compute::Opening;
use crate::engine::tested;
use crate::error::{Error, Result};
use crate::gpu::{FeatureCaps, Gpu, GpuOptions, LimitCaps};

/// A GPU that is opening.
pub(in crate::web) struct Backend {
    options: GpuOptions,
    /// The device, which may still be opening, until an attempt takes it.
    first: RefCell<Option<LocalBoxFuture<'static, Result<Gpu>>>>,
}

impl Backend {
    /// Begins to open a device and to test it. So the likeliest failure comes before a gigabyte is downloaded. In
    /// a new browser opening takes as long as fetching the file's header.
    ///
    /// Errors: `no-webgpu`.
    pub(in crate::web) fn begin(wishes: &Wishes) -> Result<Self> {
        require_webgpu()?;
        features::ask();
        let options = options(wishes);
        let wanted = options.clone();
        let (task, gpu) = async move { open(&wanted).await }.remote_handle();
        // The device opens while the load waits for something else.
        spawn_local(task);
        Ok(Self { options, first: RefCell::new(Some(gpu.boxed_local())) })
    }

    /// Resolves when the first device is open and tested.
    ///
    /// Errors: `no-adapter`, `missing-feature`.
    pub(in crate::web) async fn opened(&self) -> Result<()> {
        let first = self.first.take();
        if let Some(gpu) = first {
            let gpu = gpu.await?;
            self.first.replace(Some(ready(Ok(gpu)).boxed_local()));
        }
        Ok(())
    }

    /// Opens the device for a session. Further attempts open a new one.
    pub(in crate::web) fn open(&self) -> impl Opening + use<'_> {
        async {
            let first = self.first.take();
            match first {
                Some(gpu) => gpu.await,
                None => open(&self.options).await,
            }
        }
    }
}

/// Does `work`. A thread that waits for a GPU does other work meanwhile.
pub(in crate::web) async fn with_events<F: Future>(work: F) -> F::Output {
    work.await
}

/// Opens a device and tests it. Old cards have no adapter but one in compatibility mode.
///
/// Errors: those of [`Gpu::open`] and [`tested`].
async fn open(options: &GpuOptions) -> Result<Gpu> {
    let opened = match Gpu::open(options).await {
        Err(Error::NoAdapter(why)) => features::in_compatibility_mode(Gpu::open(options))
            .await
            .map_err(|_| Error::NoAdapter(why)),
        opened => opened,
    };
    tested(opened?).await
}

fn options(wishes: &Wishes) -> GpuOptions {
    let Wishes { power_preference, subgroups, software, packed_dot, matrix_units, .. } = *wishes;
    GpuOptions {
        power_preference: power_preference.map(Into::into),
        limits: LimitCaps {
            max_storage_buffer_binding_size: wishes.max_storage_buffer_binding_size,
            max_buffer_size: wishes.max_buffer_size,
        },
        features: FeatureCaps { subgroups, software, packed_dot, matrix_units },
        max_bytes: wishes.max_bytes,
        strict: wishes.strict,
        ..GpuOptions::default()
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
