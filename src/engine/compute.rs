//! Makes the engine compute for a session.

use std::ops::Range;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};

use super::on_gpu::Engine;
use crate::compute::{
    About, Backend, Choice, Choosing, Compute, Depth, EngineOptions, Loss, Opening, Pending,
    Profile, Progress, Seat, Span, Steps, Tap, Traits,
};
use crate::error::Result;
use crate::gpu::{Gpu, Link};
use crate::model::{Adapters, Config, Weight};
use crate::sampling::Mask;
use crate::source::{Reader, Source};

impl<F: Future<Output = Result<Gpu>>> Opening for F {
    type Opened = Gpu;

    fn open(self) -> impl Future<Output = Result<Gpu>> {
        self
    }

    async fn load<S: Source>(
        gpu: Gpu,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        Ok(Box::new(Engine::load(gpu, config, table, reader, options, progress).await?))
    }
}

impl Steps for Engine {
    fn prefill_and_sample(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<Choice>> {
        Pending::new(self.prefill_and_sample(ids, pos, begin).take())
    }

    fn decode_and_sample(&self, pos: usize, n: usize) -> Pending<Vec<Choice>> {
        Pending::new(self.decode_and_sample(pos, n).take())
    }

    fn decode_and_choose(
        &self,
        ids: &[u32],
        pos: usize,
        uncertain: &[u32],
    ) -> Pending<Vec<Choice>> {
        Pending::new(self.decode_and_choose(ids, pos, uncertain).take())
    }

    fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()> {
        self.write_masks(slot, masks)
    }

    fn max_draft_pass(&self, pos: usize) -> usize {
        self.few_at(pos)
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        self.recount(ids, prompt, output);
    }
}

impl Compute for Engine {
    fn traits(&self) -> Traits {
        let tuning = &self.gpu().tuning;
        Traits {
            n_ctx: self.n_ctx(),
            chunk: self.chunk(),
            slots: self.slots(),
            pass: self.chunk(),
            depth: Depth {
                max_batches: tuning.max_batches,
                max_batch_steps: tuning.max_batch_steps,
            },
            prompt_lookup: tuning.prompt_lookup || self.uploads(),
            shared_chunk: self.shared_chunk(),
        }
    }

    fn about(&self) -> About {
        About {
            backend: Backend::Webgpu,
            notes: self.gpu().notes.clone(),
            remarks: self.gpu().remarks.clone(),
            adapter: self.gpu().adapter.clone(),
            threads: None,
            kv: self.kv(),
            gpu_bytes: self.gpu().allocated(),
            streamed_layers: self.streamed_layers(),
            dispatches_per_token: self.dispatches_per_token(),
            kernels: self.kernels(),
            sample: self.sample(),
        }
    }

    fn config(&self) -> &Config {
        self.config()
    }

    fn check(&self) -> Result<()> {
        self.gpu().check()
    }

    fn is_lost(&self) -> bool {
        self.gpu().is_lost()
    }

    fn lost(&self) -> oneshot::Receiver<Loss> {
        self.gpu().lost()
    }

    fn positions(&self) -> usize {
        self.positions()
    }

    fn cache_buffers(&self) -> usize {
        self.cache_buffers()
    }

    fn position_bytes(&self) -> usize {
        self.position_bytes()
    }

    fn grow(&mut self, more: usize, most: usize) -> LocalBoxFuture<'_, Result<bool>> {
        self.grow(more, most).boxed_local()
    }

    fn set_adapters<'a>(&'a mut self, adapters: &'a Adapters) -> LocalBoxFuture<'a, Result<()>> {
        self.set_adapters(adapters).boxed_local()
    }

    fn copy_cache(&self, from: usize, to: usize, n: usize) {
        self.copy_cache(from, to, n);
    }

    fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Pending<Vec<u32>> {
        Pending::new(self.read_cache(buffer, first, n).take())
    }

    fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) -> Pending<()> {
        self.write_cache(buffer, first, bytes);
        let gpu = Link::clone(self.gpu());
        let written = gpu.flush();
        Pending::new(async move {
            gpu.arrived(written).await;
            gpu.check()
        })
    }

    fn use_cache(&self, first: usize) {
        self.use_cache(first);
    }

    fn use_slot(&self, slot: usize) {
        self.use_slot(slot);
    }

    fn set_choosing(&self, choosing: &Choosing) {
        self.set_choosing(choosing);
    }

    fn compile_choosing(&self) -> LocalBoxFuture<'_, ()> {
        self.compile_choosing().boxed_local()
    }

    fn compile_next(&self) -> Option<LocalBoxFuture<'static, ()>> {
        Some(self.compile_next()?.boxed_local())
    }

    fn count(&self, prompt: &[u32], output: &[u32]) {
        self.count(prompt, output);
    }

    fn prefill(&self, ids: &[u32], pos: usize, chunk: Range<usize>) -> Pending<()> {
        done(self.prefill(ids, pos, chunk).take())
    }

    fn prefill_and_read(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<f32>> {
        Pending::new(self.prefill_and_read(ids, pos, begin).take())
    }

    fn put_token(&self, slot: usize, id: u32) {
        self.put_token(slot, id);
    }

    fn decode_batch(&self, seats: &[Seat], n: usize) -> Pending<Vec<Vec<Choice>>> {
        Pending::new(self.decode_batch(seats, n).take())
    }

    fn decode_ahead(&self, seats: &[Seat]) {
        self.decode_ahead(seats);
    }

    fn choose(&self, seats: &[Seat], rows: &[usize]) -> Pending<Vec<Vec<Choice>>> {
        Pending::new(self.choose(seats, rows).take())
    }

    fn pass(&self, spans: &[Span<'_>]) -> Pending<()> {
        submitted(self.pass(spans), |work| done(work.take()))
    }

    fn score(&self, spans: &[Span<'_>]) -> Pending<Vec<Vec<f32>>> {
        submitted(self.score(spans), |scored| Pending::new(scored.take()))
    }

    fn tap(&self, spans: &[Span<'_>], chosen: &[usize], tap: Tap) -> Pending<Vec<Vec<f32>>> {
        let width = tap.width(self.config());
        submitted(self.pass_and_tap(spans, chosen, tap), |values| {
            Pending::new(async move {
                Ok(values.take().await?.chunks_exact(width).map(<[f32]>::to_vec).collect())
            })
        })
    }

    fn bandwidth(&self) -> LocalBoxFuture<'_, Result<f64>> {
        self.bandwidth().boxed_local()
    }

    fn bytes_per_token(&self, pos: usize) -> u64 {
        self.bytes_per_token(pos)
    }

    fn profile<'a>(
        &'a self,
        pos: usize,
        n_tokens: usize,
        choosing: &'a Choosing,
    ) -> LocalBoxFuture<'a, Result<Profile>> {
        self.profile(pos, n_tokens, choosing).boxed_local()
    }
}

/// Waits for work that was submitted. If it was refused, gives the error.
fn submitted<W, T: 'static>(work: Result<W>, wait: impl FnOnce(W) -> Pending<T>) -> Pending<T> {
    match work {
        Ok(work) => wait(work),
        Err(error) => Pending::new(ready(Err(error))),
    }
}

/// Waits for work whose values do not matter.
fn done<T>(work: impl Future<Output = Result<T>> + 'static) -> Pending<()> {
    Pending::new(async { work.await.map(drop) })
}
