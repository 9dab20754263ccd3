//! A model for tests of pipelining and drafting, which need no GPU.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use web_time::Duration;

use super::pace::Pace;
use super::run::Run;
use super::stats::Stats;
use crate::compute::{Choice, Depth, Pending, Steps};

/// A model whose next token is a function of the text before it. It has a KV cache of its own: a
/// token computed at a wrong position, or after a wrong text, makes other tokens.
pub(super) struct Fake {
    max_draft_pass: usize,
    next: fn(&[u32]) -> u32,
    cache: RefCell<Vec<u32>>,
    /// The token that a step chose last, "in GPU memory".
    last: Cell<u32>,
    /// Tokens of the text that are counted for the penalties.
    counted: RefCell<Vec<u32>>,
    calls: Rc<RefCell<Vec<Call>>>,
}

/// What a [`Fake`] was asked for.
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

    /// A step counts its token.
    fn count(&self, id: u32, pos: usize) {
        let mut counted = self.counted.borrow_mut();
        assert_eq!(counted.len(), pos, "position {pos} is counted");
        counted.push(id);
    }

    /// Tokens in flight. `call` is noted when they are awaited.
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
    fn prefill_and_sample(&self, ids: &[u32], pos: usize) -> Pending<Vec<Choice>> {
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

    fn max_draft_pass(&self, _: usize) -> usize {
        self.max_draft_pass
    }
}

/// What a [`Run`] borrows.
pub(super) struct Setup {
    tokens: Vec<u32>,
    filled: usize,
    pace: Pace,
}

impl Setup {
    /// Of a card that takes `step` for each step.
    pub(super) fn new(step: Duration) -> Self {
        let mut pace = Pace::new(Depth { max_batches: 6, max_batch_steps: 4 });
        pace.suppose(step);
        Self { tokens: Vec::new(), filled: 0, pace }
    }

    /// A greedy generation of `limit` tokens, whose prompt is not computed yet.
    pub(super) fn run<'a>(&'a mut self, model: &'a Fake, prompt: &[u32], limit: usize) -> Run<'a> {
        self.tokens = prompt.to_vec();
        Run {
            model,
            tokens: &mut self.tokens,
            prompt: prompt.len(),
            filled: &mut self.filled,
            pace: &mut self.pace,
            stats: Stats::default(),
            left: limit,
            last_is_on_gpu: false,
        }
    }
}
