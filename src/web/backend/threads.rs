//! The CPU, with threads that share the memory of this one.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::Wishes;
use crate::compute::{Compute, EngineOptions, Opening, Progress};
use crate::cpu::{OnCpu, PageThreads, fail, is_right_here, serve};
use crate::error::Result;
use crate::model::{Config, Weight};
use crate::source::{Reader, Source};

// This is JavaScript because it makes workers: see threads.ts.
#[wasm_bindgen(raw_module = "./cpu/threads.js")]
extern "C" {
    #[wasm_bindgen(js_name = defaultThreads)]
    fn default_threads() -> usize;
    /// Starts `count` workers. Resolves to an array of strings: for each that does not run, the reason.
    #[wasm_bindgen(js_name = startThreads)]
    fn start_threads(address: usize, count: usize) -> Promise;
}

/// Whether this thread computes rightly.
#[wasm_bindgen(js_name = isRightHere)]
pub fn is_right() -> bool {
    is_right_here()
}

/// Computes for the model whose threads are at `address`; false when it is gone. See [`serve`].
#[wasm_bindgen]
pub fn work(address: usize) -> bool {
    serve(address)
}

/// To be called in a thread whose `work` has trapped.
#[wasm_bindgen]
pub fn failed(address: usize) {
    fail(address);
}

/// The CPU, with threads that are starting.
pub(in crate::web) struct Backend(Starting);

impl Backend {
    #[allow(clippy::unnecessary_wraps, reason = "a GPU may be missing")]
    pub(in crate::web) fn begin(wishes: &Wishes) -> Result<Self> {
        let wanted = wishes.threads.unwrap_or_else(default_threads);
        let threads = PageThreads::new();
        let failures = start_threads(threads.address(), wanted - 1);
        Ok(Self(Starting { threads, failures, wanted }))
    }

    #[allow(clippy::unused_self, reason = "a GPU may fail")]
    pub(in crate::web) async fn opened(&self) -> Result<()> {
        Ok(())
    }

    pub(in crate::web) fn open(&self) -> impl Opening + use<> {
        self.0.clone()
    }
}

/// The CPU as soon as its threads run.
#[derive(Clone)]
struct Starting {
    threads: PageThreads,
    /// Resolves to the reasons of threads that do not run beside this one.
    failures: Promise,
    wanted: usize,
}

impl Opening for Starting {
    type Opened = OnCpu;

    async fn open(self) -> Result<OnCpu> {
        // The promise does not reject: where no thread starts, this one computes alone.
        let failures = JsFuture::from(self.failures).await.unwrap_or_else(|_| Array::new().into());
        let failures = Array::from(&failures);
        let running = self.wanted - failures.length() as usize;
        let note = failures
            .get(0)
            .as_string()
            .map(|why| format!("{running} of {} threads compute: {why}", self.wanted));
        Ok(OnCpu { page: Some(self.threads.with(running - 1)), note, ..OnCpu::default() })
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
