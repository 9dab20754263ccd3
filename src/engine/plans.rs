//! The recorded plans of an engine.

use super::block::Width;
use super::forward;
use super::head;
use super::lm_head::Candidates;
use super::stages::SlotPlans;
use super::state::State;
use super::weights::Weights;
use crate::gpu::{Plan, Recorder};
use crate::model::Config;

/// A step runs `decode`, `short` or `prefill`. If it chooses a token, it then runs the slot's plans
/// for a hidden state: see [`SlotPlans`]. A draft pass runs `few`, `few_logits`, `best_of_each`
/// and, if asked, `logprobs_each`. A step of several sequences runs `few` and `few_logits`; then,
/// for each sequence, `take_logits` and its slot's plans for logits. A pass that scores tokens runs
/// `few`, `few_logits` and `scores`; one that reads hidden states runs `few` and `hidden`.
/// Passes of more tokens run `short` or `prefill` in place of `few`.
pub(super) struct Plans {
    /// One token through the layers.
    pub(super) decode: Plan,
    /// A chunk of tokens through the layers.
    pub(super) prefill: Plan,
    /// A chunk of at most [`SHORT`](super::block::SHORT) tokens through the layers.
    pub(super) short: Plan,
    /// Few tokens through the layers.
    pub(super) few: Plan,
    /// From the residual stream of few tokens to the logits after each.
    pub(super) few_logits: Plan,
    /// From the residual stream of any number of tokens to the hidden state of each.
    pub(super) hidden: Plan,
    /// From the logits after few tokens to the log-probabilities of known tokens.
    pub(super) scores: Plan,
    /// Copies the logits after one of few tokens.
    pub(super) take_logits: Plan,
    /// From the last token's hidden state to logits.
    pub(super) logits: Plan,
    /// The plans of each slot.
    pub(super) slots: Vec<SlotPlans>,
}

impl Plans {
    pub(super) fn record(
        recorder: &mut Recorder,
        config: &Config,
        weights: &Weights,
        state: &State,
        candidates: Option<&Candidates>,
    ) -> Self {
        Self {
            // A load compiles kernels for later in this order, so the plans that most calls need
            // come first.
            short: forward::layers(recorder, config, weights, state, Width::Short),
            decode: forward::layers(recorder, config, weights, state, Width::One),
            prefill: forward::layers(recorder, config, weights, state, Width::Chunk),
            few: forward::layers(recorder, config, weights, state, Width::Few),
            few_logits: head::logits_of_few(recorder, weights, state),
            hidden: head::hidden(recorder, weights, state),
            take_logits: head::take_logits(recorder, state),
            scores: head::scores(recorder, state),
            logits: head::logits(recorder, weights, state),
            slots: state
                .slots
                .iter()
                .map(|slot| SlotPlans::record(recorder, weights, state, candidates, slot))
                .collect(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        let Self { decode, short, prefill, few, few_logits, hidden, .. } = self;
        let Self { take_logits, scores, logits, slots, .. } = self;
        let slots = slots.iter().flat_map(SlotPlans::all);
        [decode, short, prefill, few, few_logits, hidden, take_logits, logits, scores]
            .into_iter()
            .chain(slots)
    }
}
