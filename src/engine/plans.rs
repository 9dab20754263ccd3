//! The recorded work.

use super::block::Width;
use super::forward;
use super::head;
use super::lm_head::Candidates;
use super::state::{Slot, State};
use super::weights::Weights;
use crate::compute::Choosing;
use crate::gpu::{Buffer, Plan, Recorder};
use crate::model::Config;

/// A step runs `decode`, `short` or `prefill`. Where a token is wanted, it then runs a slot's `best`,
/// `kept`, `kept_by_share` or `best_adjusted`, or `logits` and what chooses by them. A draft pass runs
/// `few`, `few_logits`, `best_of_each` and perhaps `logprobs_each`. A step of several texts runs `few`
/// and `few_logits`; then, for each text, `take_logits` and what chooses its token. A pass that scores tokens
/// runs `few`, `few_logits` and `scores`.
pub(super) struct Plans {
    /// One token through the layers.
    pub(super) decode: Plan,
    /// A chunk of tokens through the layers.
    pub(super) prefill: Plan,
    /// The same for at most [`SHORT`](super::block::SHORT) tokens.
    pub(super) short: Plan,
    /// Few tokens through the layers.
    pub(super) few: Plan,
    /// Their hidden states to the logits after each.
    pub(super) few_logits: Plan,
    /// Their logits to the log-probabilities of tokens that are known.
    pub(super) scores: Plan,
    /// Their logits to those after one of them.
    pub(super) take_logits: Plan,
    /// The last token's hidden state to logits.
    pub(super) logits: Plan,
    /// Those of each slot.
    pub(super) slots: Vec<SlotPlans>,
}

/// What chooses a token for the text of a slot. By logits that is one of `by_logits`; or `penalize`
/// and one of `by_adjusted`. Then perhaps `logprobs`.
pub(super) struct SlotPlans {
    /// The last token's hidden state to the best token, or where the LM head is split also to one drawn
    /// from all.
    pub(super) best: Plan,
    /// The last token's hidden state to one drawn from those that top-k, top-p and min-p keep. Empty
    /// where the LM head is not split.
    pub(super) kept: Plan,
    /// The same for top-p without top-k.
    pub(super) kept_by_share: Plan,
    /// Like `best`, with biases and penalties. Empty where the LM head is not split.
    pub(super) best_adjusted: Plan,
    /// The logits after each of few tokens to the best token after it.
    pub(super) best_of_each: Plan,
    /// Makes adjusted logits of the model's, with biases and penalties.
    pub(super) penalize: Plan,
    by_logits: Choosers,
    by_adjusted: Choosers,
    /// What is told of the token that was chosen.
    pub(super) logprobs: Plan,
    /// What is told of the tokens of a draft pass.
    pub(super) logprobs_each: Plan,
}

/// Both choose a token by the same logits.
pub(super) struct Choosers {
    /// The best token, or one drawn from all.
    drawn: Plan,
    /// A token drawn from those that top-k, top-p and min-p keep.
    filtered: Plan,
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
            // What a load leaves for later is compiled in this order: what most calls need comes first.
            short: forward::layers(recorder, config, weights, state, Width::Short),
            decode: forward::layers(recorder, config, weights, state, Width::One),
            prefill: forward::layers(recorder, config, weights, state, Width::Chunk),
            few: forward::layers(recorder, config, weights, state, Width::Few),
            few_logits: head::few_logits(recorder, weights, state),
            take_logits: head::take_logits(recorder, state),
            scores: head::scores(recorder, state),
            logits: head::logits(recorder, weights, state),
            slots: state
                .slots
                .iter()
                .map(|slot| SlotPlans {
                    best: head::best(recorder, weights, state, candidates, slot),
                    best_of_each: head::best_of_each(recorder, state, slot),
                    kept: head::kept(recorder, weights, state, candidates, slot),
                    kept_by_share: head::kept_by_share(recorder, weights, state, candidates, slot),
                    by_logits: Choosers::record(recorder, state, slot, &state.logits),
                    best_adjusted: head::best_adjusted(recorder, weights, state, candidates, slot),
                    penalize: head::penalize(recorder, state, slot),
                    by_adjusted: Choosers::record(recorder, state, slot, &state.adjusted),
                    logprobs: head::logprobs(recorder, state, slot),
                    logprobs_each: head::logprobs_each(recorder, state, slot),
                })
                .collect(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        let Self { decode, short, prefill, few, few_logits, .. } = self;
        let Self { take_logits, scores, logits, slots, .. } = self;
        let slots = slots.iter().flat_map(SlotPlans::all);
        [decode, short, prefill, few, few_logits, take_logits, logits, scores]
            .into_iter()
            .chain(slots)
    }
}

impl SlotPlans {
    fn all(&self) -> impl Iterator<Item = &Plan> {
        let Self { best, kept, kept_by_share, best_adjusted, best_of_each, penalize, .. } = self;
        let Self { by_logits, by_adjusted, .. } = self;
        let choosers = [by_logits, by_adjusted].map(|by| [&by.drawn, &by.filtered]);
        let told = [&self.logprobs, &self.logprobs_each];
        [best, kept, kept_by_share, best_adjusted, best_of_each, penalize]
            .into_iter()
            .chain(choosers.into_iter().flatten())
            .chain(told)
    }

    /// From logits to a token, and what is told of it.
    pub(super) fn chosen(&self, choosing: &Choosing) -> impl Iterator<Item = &Plan> + use<'_> {
        let adjusts = choosing.is_adjusted();
        let Choosers { drawn, filtered } =
            if adjusts { &self.by_adjusted } else { &self.by_logits };
        let choose = if choosing.is_filtered() { filtered } else { drawn };
        let told = choosing.logprobs.map(|_| &self.logprobs);
        adjusts.then_some(&self.penalize).into_iter().chain([choose]).chain(told)
    }
}

impl Choosers {
    fn record(p: &mut Recorder, state: &State, slot: &Slot, logits: &Buffer<f32>) -> Self {
        Self {
            drawn: head::drawn(p, state, slot, logits),
            filtered: head::filtered(p, state, slot, logits),
        }
    }
}
