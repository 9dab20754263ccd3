//! A model for tests of steps in flight and of drafts, which need no GPU.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use web_time::{Duration, Instant};

use super::draft::Drafter;
use super::foresight::Foresight;
use super::pace::Pace;
use super::run::Run;
use super::stats::Stats;
use super::work::{InFlight, Work};
use crate::compute::{Choice, Depth, Pending, Steps};
use crate::error::Result;
use crate::sampling::Mask;

/// A model whose next token is a function of the sequence before it. It has a KV cache of its own.
/// If a token is computed at a wrong position or after a wrong sequence, other tokens come out.
pub(super) struct Fake {
    max_draft_pass: usize,
    next: fn(&[u32]) -> u32,
    cache: RefCell<Vec<u32>>,
    /// The token that a step chose last, "in GPU memory".
    last: Cell<u32>,
    /// The tokens of the sequence that were counted for the penalties.
    counted: RefCell<Vec<u32>>,
    calls: Rc<RefCell<Vec<Call>>>,
}

/// A call of a [`Fake`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Call {
    /// Submits this many tokens, and chooses one.
    Prefill(usize),
    /// Submits this many steps.
    Decode(usize),
    /// Submits a draft pass of this many tokens.
    Draft(usize),
    /// Waits for this many tokens.
    Tokens(usize),
    /// Waits for this many choices.
    Choices(usize),
}

impl Fake {
    pub(super) fn new(max_draft_pass: usize, next: fn(&[u32]) -> u32) -> Self {
        Self {
            max_draft_pass,
            next,
            cache: RefCell::default(),
            last: Cell::default(),
            counted: RefCell::default(),
            calls: Rc::default(),
        }
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// Asserts that the cache holds `tokens`, and perhaps others behind them.
    #[track_caller]
    pub(super) fn assert_computed(&self, tokens: &[u32]) {
        assert_eq!(self.cache.borrow()[..tokens.len()], *tokens);
    }

    /// Computes `id` at `pos`, and gives the token after it.
    fn compute(&self, id: u32, pos: usize) -> u32 {
        let mut cache = self.cache.borrow_mut();
        assert!(pos <= cache.len(), "position {pos} is computed before position {}", cache.len());
        match cache.get_mut(pos) {
            Some(cached) => *cached = id,
            None => cache.push(id),
        }
        (self.next)(&cache[..=pos])
    }

    /// Counts the token of a step.
    fn count(&self, id: u32, pos: usize) {
        let mut counted = self.counted.borrow_mut();
        assert_eq!(counted.len(), pos, "position {pos} is counted");
        counted.push(id);
    }

    /// Tokens in flight. `call` is noted when they are taken.
    fn awaited(&self, ids: Vec<u32>, call: fn(usize) -> Call) -> Pending<Vec<Choice>> {
        let calls = Rc::clone(&self.calls);
        Pending::new(async move {
            calls.borrow_mut().push(call(ids.len()));
            Ok(ids.into_iter().map(Choice::from).collect())
        })
    }

    fn called(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }
}

impl Steps for Fake {
    fn prefill_and_sample(&self, ids: &[u32], pos: usize, _begin: usize) -> Pending<Vec<Choice>> {
        self.called(Call::Prefill(ids.len()));
        for (pos, &id) in (pos..).zip(ids) {
            self.last.set(self.compute(id, pos));
            self.count(id, pos);
        }
        self.awaited(vec![self.last.get()], Call::Tokens)
    }

    fn decode_and_sample(&self, pos: usize, steps: usize) -> Pending<Vec<Choice>> {
        self.called(Call::Decode(steps));
        let step = |pos| {
            let id = self.last.get();
            self.last.set(self.compute(id, pos));
            self.count(id, pos);
            self.last.get()
        };
        self.awaited((pos..pos + steps).map(step).collect(), Call::Tokens)
    }

    fn decode_and_choose(
        &self,
        ids: &[u32],
        pos: usize,
        uncertain: &[u32],
    ) -> Pending<Vec<Choice>> {
        self.called(Call::Draft(ids.len()));
        assert!(ids.len() <= self.max_draft_pass);
        let supposed = [&self.counted.borrow()[..], uncertain].concat();
        assert_eq!(supposed, self.cache.borrow()[..pos], "what the penalties of a draft count");
        let ids = (pos..).zip(ids).map(|(pos, &id)| self.compute(id, pos)).collect();
        self.awaited(ids, Call::Choices)
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        let mut counted = self.counted.borrow_mut();
        counted.extend(ids);
        assert_eq!(*counted, [prompt, output].concat());
    }

    fn write_masks(&self, _: usize, _: &[Mask]) -> Result<()> {
        Ok(())
    }

    fn max_draft_pass(&self, _: usize) -> usize {
        self.max_draft_pass
    }
}

/// A greedy generation that runs alone.
pub(super) struct Alone<'a> {
    model: &'a Fake,
    pub(super) tokens: Vec<u32>,
    prompt: usize,
    pub(super) filled: usize,
    most: usize,
    pace: Pace,
    pub(super) stats: Stats,
    pub(super) last_is_on_gpu: bool,
    pub(super) awaited: usize,
    drafted: usize,
    pub(super) in_flight: InFlight,
    drafter: Drafter,
    /// Tokens that came together with others and were not read yet.
    ready: VecDeque<Choice>,
}

impl<'a> Alone<'a> {
    /// Submits a prompt, on a card that takes the time `step` for each step. At most `limit` tokens
    /// are generated.
    pub(super) fn new(
        model: &'a Fake,
        prompt: &[u32],
        (limit, step, lookup): (usize, Duration, bool),
    ) -> Self {
        let mut pace = Pace::new(Depth { max_batches: 6, max_batch_steps: 4 });
        pace.suppose(step);
        let mut in_flight = InFlight::default();
        let first = model.prefill_and_sample(prompt, 0, 0);
        in_flight.push(Work::of_one(0, first, 1, true));
        Self {
            model,
            tokens: prompt.to_vec(),
            prompt: prompt.len(),
            filled: prompt.len(),
            most: prompt.len() + limit - 1,
            pace,
            stats: Stats::default(),
            last_is_on_gpu: true,
            awaited: 1,
            drafted: 0,
            in_flight,
            drafter: Drafter::new(lookup),
            ready: VecDeque::new(),
        }
    }

    /// The run, the work in flight, and the drafter.
    pub(super) fn run(&mut self) -> (Run<'_>, &mut InFlight, &mut Drafter) {
        let run = Run {
            model: self.model,
            serial: 0,
            tokens: &self.tokens,
            prompt: self.prompt,
            filled: &mut self.filled,
            most: self.most,
            most_drafted: self.most,
            foresight: Foresight {
                constraint: None,
                mask: None,
                masked: false,
                slot: 0,
                drafted: &mut self.drafted,
            },
            pace: &mut self.pace,
            stats: &mut self.stats,
            last_is_on_gpu: &mut self.last_is_on_gpu,
            awaited: &mut self.awaited,
        };
        (run, &mut self.in_flight, &mut self.drafter)
    }

    /// The next token; `None` after as many tokens as wanted.
    pub(super) async fn next(&mut self) -> Option<u32> {
        if self.ready.is_empty() {
            let (mut run, in_flight, drafter) = self.run();
            drafter.drop_mistaken(&mut run, in_flight);
            drafter.submit(&mut run, in_flight).expect("a fake does not fail");
            self.take().await;
        }
        let choice = self.ready.pop_front()?;
        self.awaited -= 1;
        self.tokens.push(choice.id);
        self.drafter.observe(&self.tokens);
        Some(choice.id)
    }

    /// Waits for the oldest work in flight.
    pub(super) async fn take(&mut self) {
        match self.in_flight.pop() {
            Some(Work::Steps { tokens, n, ends_prompt, .. }) => {
                let tokens = tokens.take().await.expect("a fake does not fail").concat();
                if ends_prompt {
                    self.pace.pause();
                }
                self.pace.came(Instant::now(), n);
                self.ready.extend(tokens);
            }
            Some(Work::Draft { ids, choices, .. }) => {
                let chosen = choices.take().await.expect("a fake does not fail");
                let (mut run, in_flight, drafter) = self.run();
                let tokens = drafter.accepted(&mut run, in_flight, &ids, chosen);
                self.ready.extend(tokens);
            }
            Some(Work::Chunk(_)) | None => {}
        }
    }
}
