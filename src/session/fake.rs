//! A model for tests of pipelining and drafting, which need no GPU.

use std::cell::{Cell, RefCell};

use web_time::Duration;

use super::pace::Pace;
use super::run::{Model, Run};
use super::stats::Stats;
use crate::compute::Choice;
use crate::error::Result;

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
    calls: RefCell<Vec<Call>>,
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
            calls: RefCell::default(),
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

    fn called(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }
}

impl Model for Fake {
    type Tokens = Vec<u32>;
    type Choices = Vec<u32>;

    fn prefill_and_sample(&self, ids: &[u32], pos: usize) -> Vec<u32> {
        self.called(Call::Prefill(ids.len()));
        for (pos, &id) in (pos..).zip(ids) {
            self.last.set(self.compute(id, pos));
            self.count(id, pos);
        }
        vec![self.last.get()]
    }

    fn decode_and_sample(&self, pos: usize, steps: usize) -> Vec<u32> {
        self.called(Call::Decode(steps));
        let step = |pos| {
            let id = self.last.get();
            self.last.set(self.compute(id, pos));
            self.count(id, pos);
            self.last.get()
        };
        (pos..pos + steps).map(step).collect()
    }

    fn decode_and_choose(&self, ids: &[u32], pos: usize, uncertain: &[u32]) -> Vec<u32> {
        self.called(Call::Draft(ids.len()));
        assert!(ids.len() <= self.max_draft_pass);
        let supposed = [&self.counted.borrow()[..], uncertain].concat();
        assert_eq!(supposed, self.cache.borrow()[..pos], "what the penalties of a draft count");
        (pos..).zip(ids).map(|(pos, &id)| self.compute(id, pos)).collect()
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        let mut counted = self.counted.borrow_mut();
        counted.extend(ids);
        assert_eq!(*counted, [prompt, output].concat());
    }

    fn max_draft_pass(&self, _: usize) -> usize {
        self.max_draft_pass
    }

    async fn tokens(&self, tokens: Vec<u32>) -> Result<Vec<Choice>> {
        self.called(Call::Tokens(tokens.len()));
        Ok(tokens.into_iter().map(Choice::from).collect())
    }

    async fn choices(&self, choices: Vec<u32>) -> Result<Vec<Choice>> {
        self.called(Call::Choices(choices.len()));
        Ok(choices.into_iter().map(Choice::from).collect())
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
        let mut pace = Pace::new(&crate::gpu::Tuning::card(None, 256));
        pace.suppose(step);
        Self { tokens: Vec::new(), filled: 0, pace }
    }

    /// A greedy generation of `limit` tokens, whose prompt is not computed yet.
    pub(super) fn run<'a>(
        &'a mut self,
        model: &'a Fake,
        prompt: &[u32],
        limit: usize,
    ) -> Run<'a, Fake> {
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
