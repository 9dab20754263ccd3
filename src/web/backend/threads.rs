//! The CPU, with threads that share the memory of this one.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::Wishes;
use crate::compute::{Compute, EngineOptions, Opening, Progress};
use crate::cpu::{OnCpu, PageThreads, fail, is_right_here, serve};
use crate::error::{Error, Result};
use crate::model::{Config, Weight};
use crate::source::{Reader, Source};

// This is JavaScript because it makes workers: see threads.ts.
#[wasm_bindgen(raw_module = "./cpu/threads.js")]
extern "C" {
    #[wasm_bindgen(js_name = defaultThreads)]
    fn default_threads() -> usize;
    /// Resolves to the number of workers that have started, of `count`.
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
        let others = start_threads(threads.address(), wanted - 1);
        Ok(Self(Starting { threads, others, wanted, strict: wishes.strict }))
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
    /// Resolves to the number of threads that run beside this one.
    others: Promise,
    wanted: usize,
    strict: bool,
}

impl Opening for Starting {
    type Opened = OnCpu;

    async fn open(self) -> Result<OnCpu> {
        // The promise does not reject: where no thread starts, this one computes alone.
        let others = JsFuture::from(self.others).await.ok().and_then(|n| n.as_f64());
        let others = others.unwrap_or_default() as usize;
        let note = (others + 1 < self.wanted).then(|| {
            format!("{} of {} threads compute: the others did not start", others + 1, self.wanted)
        });
        match note {
            Some(note) if self.strict => Err(Error::MissingFeature(note)),
            note => Ok(OnCpu { page: Some(self.threads.with(others)), note, ..OnCpu::default() }),
        }
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
