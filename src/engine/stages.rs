//! The stages in which a token is chosen: the source of its logits, their adjustment, and the pick.
//!
//! A stage is a few kernels. [`TABLE`] lists the combinations that have plans. So a new source,
//! adjustment or pick is a value of its enum and rows of the table. A plan of its own reads
//! log-probabilities from the model's logits afterwards.

use super::head;
use super::lm_head::Candidates;
use super::state::{Slot, State};
use super::weights::Weights;
use crate::compute::{Choosing, Pick};
use crate::gpu::{Buffer, Plan, Recorder};
use crate::kernels::{Dense, adjusts_little, pays_mostly};

/// The source of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The upper bytes of the LM head give approximate logits. Rows that may decide are then
    /// computed whole.
    Upper,
    /// Like `Upper`. If the rows that may decide turn out not to suffice, the other rows are
    /// computed too.
    UpperThenRest,
    /// The plan that computes all logits.
    Logits,
}

/// A row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stages {
    pub(super) source: Source,
    /// Whether biases, penalties and the mask change the logits.
    pub(super) adjusted: bool,
    pub(super) pick: Pick,
}

/// The first row that serves a call is taken. A load compiles kernels for later in this order too.
pub(super) const TABLE: [Stages; 9] = [
    row(Source::Upper, false, Pick::Drawn),
    row(Source::Logits, false, Pick::Best),
    row(Source::Upper, false, Pick::Kept),
    row(Source::UpperThenRest, false, Pick::Kept),
    row(Source::Logits, false, Pick::Drawn),
    row(Source::Logits, false, Pick::Kept),
    row(Source::Upper, true, Pick::Drawn),
    row(Source::Logits, true, Pick::Drawn),
    row(Source::Logits, true, Pick::Kept),
];

const fn row(source: Source, adjusted: bool, pick: Pick) -> Stages {
    Stages { source, adjusted, pick }
}

impl Stages {
    /// Whether a token can be chosen in this way. `candidates` are those of a split LM head.
    fn serves(&self, choosing: &Choosing, candidates: Option<&Candidates>) -> bool {
        // A draw at temperature 0 gives the best token.
        let picks = match self.pick {
            Pick::Drawn => choosing.pick() != Pick::Kept,
            pick => choosing.pick() == pick,
        };
        picks && self.adjusted == choosing.adjusts() && self.has_logits(choosing, candidates)
    }

    /// Whether the source gives all logits that the choice needs.
    fn has_logits(&self, choosing: &Choosing, candidates: Option<&Candidates>) -> bool {
        let sampling = &choosing.sampling;
        let candidates = candidates.filter(|_| choosing.logprobs.is_none());
        match (self.source, self.pick) {
            (Source::Logits, _) => true,
            (Source::Upper, Pick::Kept) => candidates.is_some_and(|by| by.keep(sampling)),
            (Source::Upper, _) => {
                candidates.is_some() && (!self.adjusted || adjusts_little(sampling))
            }
            (Source::UpperThenRest, _) => candidates.is_some() && pays_mostly(sampling),
        }
    }
}

/// The plans that choose a token for the sequence of a slot.
pub(super) struct SlotPlans {
    /// One plan for each row of [`TABLE`], from the last token's hidden state to a token; with
    /// [`Source::Logits`], from all logits. It is empty if the row needs a split LM head and there
    /// is none.
    rows: [Plan; TABLE.len()],
    /// From the logits after each of few tokens to the best token after it.
    pub(super) best_of_each: Plan,
    /// The plan for the log-probabilities of the chosen token.
    logprobs: Plan,
    /// The plan for the log-probabilities of the tokens of a draft pass.
    pub(super) logprobs_each: Plan,
}

impl SlotPlans {
    pub(super) fn record(
        p: &mut Recorder,
        weights: &Weights,
        state: &State,
        candidates: Option<&Candidates>,
        slot: &Slot,
    ) -> Self {
        let split = candidates.zip(weights.lm_head().dense());
        let parts = Parts { weights, state, split, slot };
        Self {
            rows: TABLE.map(|stages| parts.plan(p, stages)),
            best_of_each: head::best_of_each(p, state, slot),
            logprobs: head::logprobs(p, state, slot),
            logprobs_each: head::logprobs_each(p, state, slot),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        self.rows.iter().chain([&self.best_of_each, &self.logprobs, &self.logprobs_each])
    }

    /// From the last token's hidden state to the next token. `logits` is the plan that computes all
    /// logits.
    pub(super) fn of_hidden_state<'a>(
        &'a self,
        choosing: &Choosing,
        candidates: Option<&Candidates>,
        logits: &'a Plan,
    ) -> Vec<&'a Plan> {
        let serves = |(stages, _): &(&Stages, _)| stages.serves(choosing, candidates);
        match TABLE.iter().zip(&self.rows).find(serves) {
            Some((stages, plan)) if stages.source != Source::Logits => vec![plan],
            _ => [logits].into_iter().chain(self.of_logits(choosing)).collect(),
        }
    }

    /// From all logits to the next token and its log-probabilities.
    pub(super) fn of_logits(&self, choosing: &Choosing) -> impl Iterator<Item = &Plan> + use<'_> {
        // Without candidates, only rows with this source serve.
        let serves = |(stages, _): &(&Stages, _)| stages.serves(choosing, None);
        let plan = TABLE.iter().zip(&self.rows).find(serves).map(|(_, plan)| plan);
        let logprobs = choosing.logprobs.map(|_| &self.logprobs);
        plan.into_iter().chain(logprobs)
    }
}

/// Everything that the plans of stages are recorded from.
#[derive(Clone, Copy)]
struct Parts<'a> {
    weights: &'a Weights,
    state: &'a State,
    /// The LM head, if it is split.
    split: Option<(&'a Candidates, &'a Dense)>,
    slot: &'a Slot,
}

impl<'a> Parts<'a> {
    fn plan(self, p: &mut Recorder, Stages { source, adjusted, pick }: Stages) -> Plan {
        match (source, self.split) {
            (Source::Logits, _) => self.by_logits(p, adjusted, pick),
            (_, None) => {}
            (_, Some(split)) if pick == Pick::Kept => {
                self.kept_by_upper(p, split, source == Source::UpperThenRest);
            }
            (_, Some(split)) => self.drawn_by_upper(p, split, adjusted),
        }
        p.finish()
    }

    fn by_logits(self, p: &mut Recorder, adjusted: bool, pick: Pick) {
        let Self { state, slot, .. } = self;
        let logits = if adjusted {
            p.penalize(slot.adjustments(), &slot.token, &state.logits, &state.adjusted);
            &state.adjusted
        } else {
            &state.logits
        };
        match pick {
            Pick::Best | Pick::Drawn => {
                p.sample_best(&slot.sampling, logits, &state.best, pick == Pick::Drawn);
                p.sample_commit(&state.best, &slot.token, &slot.sampled);
            }
            Pick::Kept => {
                let greatest = &state.selection.greatest;
                p.sample_max(logits, greatest);
                p.sample_bins(&slot.sampling, logits, greatest, &state.selection);
                self.sift(p, logits, greatest);
            }
        }
    }

    /// Chooses the best token, or one drawn from all, from as few logits as possible.
    fn drawn_by_upper(
        self,
        p: &mut Recorder,
        (candidates, w): (&Candidates, &Dense),
        adjusts: bool,
    ) {
        let Candidates { approximation, adjusted, best, .. } = candidates;
        let State { x, last, .. } = self.state;
        let Slot { sampling, penalties, token, sampled, .. } = self.slot;
        p.rms_norm(x, &self.weights.output_norm, last);
        p.gemv_upper(sampling, w, last, approximation, !adjusts);
        let by = if adjusts {
            p.penalize_upper(sampling, self.slot.adjustments(), token, approximation, adjusted);
            adjusted
        } else {
            approximation
        };
        p.rescore(sampling, penalties, w, last, by, best);
        p.sample_commit(best, token, sampled);
    }

    /// Chooses a token drawn from those that top-k, top-p and min-p keep, from the logits of the
    /// rows that may be kept. With `rest`, the other logits are computed too if these do not show
    /// where top-p ends.
    fn kept_by_upper(self, p: &mut Recorder, (candidates, w): (&Candidates, &Dense), rest: bool) {
        let Candidates { approximation, rescored, .. } = candidates;
        let State { x, last, logits, selection, .. } = self.state;
        let sampling = &self.slot.sampling;
        p.rms_norm(x, &self.weights.output_norm, last);
        p.gemv_upper(sampling, w, last, approximation, false);
        p.rescore_kept(sampling, w, last, approximation, rescored);
        p.sample_bins(sampling, logits, &rescored.greatest, selection);
        if rest {
            p.sample_check(sampling, selection, rescored);
            p.rescore_rest(sampling, w, last, logits, selection, rescored);
        }
        self.sift(p, logits, &rescored.greatest);
    }

    /// Puts logits into bins and chooses a token.
    fn sift(self, p: &mut Recorder, logits: &Buffer<f32>, greatest: &Buffer<u32>) {
        let State { selection, best, .. } = self.state;
        let Slot { sampling, token, sampled, .. } = self.slot;
        p.sample_sift(sampling, logits, greatest, selection, best);
        p.sample_decide(sampling, selection, best, token, sampled);
    }
}
