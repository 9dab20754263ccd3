//! The CPU, with threads that share the memory of this one.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::GpuWishes;
use crate::compute::{Compute, EngineOptions, Opening, Progress};
use crate::cpu::{OnCpu, PageThreads, fail, serve};
use crate::error::Result;
use crate::model::{Config, Weight};
use crate::source::{Reader, Source};

// This is JavaScript because it makes workers: see threads.ts.
#[wasm_bindgen(raw_module = "./cpu/threads.js")]
extern "C" {
    #[wasm_bindgen(js_name = startThreads)]
    fn start_threads(address: usize) -> Promise;
}

/// Computes for the model whose threads are at `address`, until it is gone.
#[wasm_bindgen]
pub fn work(address: usize) {
    serve(address);
}

/// To be called in a thread whose `work` has trapped.
#[wasm_bindgen]
pub fn failed(address: usize) {
    fail(address);
}

/// The CPU, with threads that are starting.
pub(in crate::web) struct Backend {
    threads: PageThreads,
    /// Resolves to the number of threads that run beside this one.
    starting: Promise,
}

impl Backend {
    #[allow(clippy::unnecessary_wraps, reason = "a GPU may be missing")]
    pub(in crate::web) fn begin(_wishes: &GpuWishes) -> Result<Self> {
        let threads = PageThreads::new();
        let starting = start_threads(threads.address());
        Ok(Self { threads, starting })
    }

    pub(in crate::web) fn open(&self) -> impl Opening + use<> {
        Starting { threads: self.threads.clone(), starting: self.starting.clone() }
    }
}

/// The CPU as soon as its threads run.
struct Starting {
    threads: PageThreads,
    starting: Promise,
}

impl Opening for Starting {
    type Opened = OnCpu;

    async fn open(self) -> Result<OnCpu> {
        // The promise does not reject: where no thread starts, this one computes alone.
        let others = JsFuture::from(self.starting).await.ok().and_then(|n| n.as_f64());
        let page = Some((self.threads, others.unwrap_or_default() as usize));
        Ok(OnCpu { page, ..OnCpu::default() })
    }

    async fn load<S: Source>(
        opened: OnCpu,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        OnCpu::load(opened, config, table, reader, options, progress).await
    }
}
