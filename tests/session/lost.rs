//! A device that is lost at any point of the work: no call is left without an answer.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};
use tritloom::compute::{
    About, Choice, Choosing, Compute, Depth, EngineOptions, Loss, Opening, Pending, Profile,
    Progress, Seat, Span, Steps, Tap, Traits,
};
use tritloom::host::HostTraits;
use tritloom::model::{Adapters, Config, Pooling, Weight};
use tritloom::native::block_on;
use tritloom::reference::OnReference;
use tritloom::sampling::Mask;
use tritloom::session::{Calls, EmbedOptions, EmbedText, LoadOptions, Prompt, Session};
use tritloom::source::{Reader, Source};
use tritloom::{Error, Result};

use crate::setup::{greedy, noise, small};
use crate::support::assert_error;

/// The reference on a device that is lost after a number of operations. It also checks that nothing
/// is computed between the two halves of a step.
#[derive(Clone, Default)]
pub(crate) struct Losing {
    left: Rc<Cell<usize>>,
    /// Whether the KV cache cannot grow.
    is_full: bool,
    /// First halves of steps, and whether the hidden states of the last one are still there.
    ahead: Rc<Cell<(usize, bool)>>,
    reference: OnReference,
}

impl Losing {
    fn after(operations: usize) -> Self {
        Self { left: Rc::new(Cell::new(operations)), ..Self::default() }
    }

    /// It is not lost, but has no memory for a larger KV cache.
    pub(crate) fn full() -> Self {
        Self { is_full: true, ..Self::after(usize::MAX) }
    }

    /// It is not lost, and has as many steps in flight as a card.
    pub(crate) fn never() -> Self {
        let depth = Depth { max_batches: 6, max_batch_steps: 4 };
        let traits = HostTraits { depth, ..HostTraits::default() };
        Self { reference: OnReference { traits }, ..Self::after(usize::MAX) }
    }

    /// How many first halves of steps were computed.
    pub(crate) fn passes_ahead(&self) -> usize {
        self.ahead.get().0
    }

    /// Counts an operation. Fails when the device is lost.
    fn operate(&self) -> Result<()> {
        self.left.set(self.left.get().saturating_sub(1));
        if self.is_lost() { Err(Error::DeviceLost("by a test".into())) } else { Ok(()) }
    }

    fn is_lost(&self) -> bool {
        self.left.get() == 0
    }

    /// Counts an operation, whose result fails if the device is lost by the time when it is taken.
    fn submit<T: 'static>(&self, result: Pending<T>) -> Pending<T> {
        self.ahead.set((self.ahead.get().0, false));
        let this = self.clone();
        let submitted = self.operate();
        Pending::new(async move {
            let value = result.take().await?;
            submitted.and_then(|()| this.operate()).map(|()| value)
        })
    }
}

impl Opening for Losing {
    type Opened = Self;

    fn open(self) -> impl Future<Output = Result<Self>> {
        ready(Ok(self))
    }

    async fn load<S: Source>(
        losing: Self,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        let compute =
            OnReference::load(losing.reference, config, table, reader, options, progress).await?;
        Ok(Box::new(Lost { losing, compute }))
    }
}

struct Lost {
    losing: Losing,
    compute: Box<dyn Compute>,
}

impl Steps for Lost {
    fn prefill_and_sample(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<Choice>> {
        self.losing.submit(self.compute.prefill_and_sample(ids, pos, begin))
    }

    fn decode_and_sample(&self, pos: usize, n: usize) -> Pending<Vec<Choice>> {
        self.losing.submit(self.compute.decode_and_sample(pos, n))
    }

    fn decode_and_choose(&self, ids: &[u32], pos: usize, before: &[u32]) -> Pending<Vec<Choice>> {
        self.losing.submit(self.compute.decode_and_choose(ids, pos, before))
    }

    fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()> {
        self.compute.write_masks(slot, masks)
    }

    fn max_draft_pass(&self, pos: usize) -> usize {
        self.compute.max_draft_pass(pos)
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        self.compute.recount(ids, prompt, output);
    }
}

impl Compute for Lost {
    fn traits(&self) -> Traits {
        self.compute.traits()
    }

    fn about(&self) -> About {
        self.compute.about()
    }

    fn config(&self) -> &Config {
        self.compute.config()
    }

    fn check(&self) -> Result<()> {
        self.losing.operate()
    }

    fn is_lost(&self) -> bool {
        self.losing.is_lost()
    }

    fn lost(&self) -> oneshot::Receiver<Loss> {
        self.compute.lost()
    }

    fn positions(&self) -> usize {
        self.compute.positions()
    }

    fn cache_buffers(&self) -> usize {
        self.compute.cache_buffers()
    }

    fn position_bytes(&self) -> usize {
        self.compute.position_bytes()
    }

    fn set_adapters<'a>(&'a mut self, adapters: &'a Adapters) -> LocalBoxFuture<'a, Result<()>> {
        match self.losing.operate() {
            Ok(()) => self.compute.set_adapters(adapters),
            Err(error) => ready(Err(error)).boxed_local(),
        }
    }

    fn grow(&mut self, more: usize, most: usize) -> LocalBoxFuture<'_, Result<bool>> {
        match self.losing.operate() {
            Ok(()) if self.losing.is_full => ready(Ok(false)).boxed_local(),
            Ok(()) => self.compute.grow(more, most),
            Err(error) => ready(Err(error)).boxed_local(),
        }
    }

    fn copy_cache(&self, from: usize, to: usize, n: usize) {
        self.compute.copy_cache(from, to, n);
    }

    fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Pending<Vec<u32>> {
        self.losing.submit(self.compute.read_cache(buffer, first, n))
    }

    fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) -> Pending<()> {
        self.losing.submit(self.compute.write_cache(buffer, first, bytes))
    }

    fn use_cache(&self, first: usize) {
        self.compute.use_cache(first);
    }

    fn use_slot(&self, slot: usize) {
        self.compute.use_slot(slot);
    }

    fn set_choosing(&self, choosing: &Choosing) {
        self.compute.set_choosing(choosing);
    }

    fn compile_choosing(&self) -> LocalBoxFuture<'_, ()> {
        self.compute.compile_choosing()
    }

    fn compile_next(&self) -> Option<LocalBoxFuture<'static, ()>> {
        self.compute.compile_next()
    }

    fn count(&self, prompt: &[u32], output: &[u32]) {
        self.compute.count(prompt, output);
    }

    fn prefill(&self, ids: &[u32], pos: usize, chunk: Range<usize>) -> Pending<()> {
        self.losing.submit(self.compute.prefill(ids, pos, chunk))
    }

    fn prefill_and_read(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<f32>> {
        self.losing.submit(self.compute.prefill_and_read(ids, pos, begin))
    }

    fn put_token(&self, slot: usize, id: u32) {
        self.compute.put_token(slot, id);
    }

    fn decode_ahead(&self, seats: &[Seat]) {
        self.losing.ahead.set((self.losing.ahead.get().0 + 1, true));
        self.compute.decode_ahead(seats);
    }

    fn choose(&self, seats: &[Seat], rows: &[usize]) -> Pending<Vec<Vec<Choice>>> {
        assert!(self.losing.ahead.get().1, "computed between the two halves of a step");
        self.losing.submit(self.compute.choose(seats, rows))
    }

    fn decode_batch(&self, seats: &[Seat], n: usize) -> Pending<Vec<Vec<Choice>>> {
        self.losing.submit(self.compute.decode_batch(seats, n))
    }

    fn pass(&self, spans: &[Span<'_>]) -> Pending<()> {
        self.losing.submit(self.compute.pass(spans))
    }

    fn score(&self, spans: &[Span<'_>]) -> Pending<Vec<Vec<f32>>> {
        self.losing.submit(self.compute.score(spans))
    }

    fn tap(&self, spans: &[Span<'_>], chosen: &[usize], tap: Tap) -> Pending<Vec<Vec<f32>>> {
        self.losing.submit(self.compute.tap(spans, chosen, tap))
    }

    fn bandwidth(&self) -> LocalBoxFuture<'_, Result<f64>> {
        self.compute.bandwidth()
    }

    fn bytes_per_token(&self, pos: usize) -> u64 {
        self.compute.bytes_per_token(pos)
    }

    fn profile<'a>(
        &'a self,
        pos: usize,
        n_tokens: usize,
        choosing: &'a Choosing,
    ) -> LocalBoxFuture<'a, Result<Profile>> {
        self.compute.profile(pos, n_tokens, choosing)
    }
}

pub(crate) fn load_with(losing: Losing, context: usize) -> Session {
    let mut options = LoadOptions::default();
    options.engine.context = Some(context);
    let bytes = small().build();
    block_on(Session::load(losing, &mut Reader::new(&bytes[..]), &options, &mut |_| {})).unwrap()
}

fn load(losing: Losing) -> Session {
    load_with(losing, 30)
}

/// A loss at any point of an embedding is its error, and the session after it has the vectors.
#[test]
fn an_embedding_tells_of_the_loss() {
    let texts: Vec<EmbedText> = (9..14).map(|n| EmbedText::Ids(noise(n))).collect();
    let options = EmbedOptions { pooling: Some(Pooling::Mean), ..EmbedOptions::default() };
    let embed = |session: &mut Session| {
        block_on(session.embed(&texts, &options, &mut |_| {})).map(|found| found.vectors)
    };
    let expected = embed(&mut load(Losing::after(usize::MAX))).unwrap();
    let mut failed = 0;
    for operations in 1.. {
        let losing = Losing::after(operations);
        let mut session = load(losing.clone());
        let found = embed(&mut session);
        if !losing.is_lost() {
            assert_eq!(found.unwrap(), expected);
            break;
        }
        assert_error(found, "device-lost", &[]);
        failed += 1;
        let mut next = load(Losing::after(usize::MAX));
        block_on(next.recall(&session.into_memory())).unwrap();
        assert_eq!(embed(&mut next).unwrap(), expected, "after {operations} operations");
    }
    assert!(failed > 10, "{failed}");
}

/// The calls that run when the device is lost, or begin then, fail with `device-lost`. Those that wait are
/// answered by the session that is loaded next.
#[test]
fn no_call_is_left_without_an_answer() {
    let mut failed = 0;
    for operations in 1.. {
        let calls = Calls::default();
        let mut answers: Vec<_> = (0..3)
            .map(|n| {
                let prompt = Prompt::Ids(noise(9 + n)[n..].to_vec());
                calls.push(prompt, greedy(9), Box::new(|_| ControlFlow::Continue(())))
            })
            .collect();
        let losing = Losing::after(operations);
        let mut session = load(losing.clone());
        let served = block_on(session.serve(&calls));
        if !losing.is_lost() {
            served.unwrap();
            break;
        }
        let mut waiting = 0;
        for answer in &mut answers {
            match answer.now_or_never() {
                None => waiting += 1,
                Some(Ok(stats)) => assert_eq!(stats.completion_tokens, 9),
                Some(Err(error)) => {
                    assert_eq!(error.code(), "device-lost");
                    failed += 1;
                }
            }
        }
        let mut next = load(Losing::after(usize::MAX));
        block_on(next.recall(&session.into_memory())).unwrap();
        block_on(next.serve(&calls)).unwrap();
        let late = answers.iter_mut().filter_map(FutureExt::now_or_never);
        assert_eq!(late.filter(Result::is_ok).count(), waiting, "after {operations} operations");
    }
    assert!(failed > 30, "{failed}");
}
