//! From the residual stream to logits and to the next token, as lists of kernels.

use super::lm_head::Candidates;
use super::state::{Slot, State};
use super::weights::{Vocabulary, Weights};
use crate::gpu::{Buffer, Extent, Plan, Recorder};
use crate::kernels::{Dense, DenseType, Packed, Product, Stream};

/// From the residual stream of the step's last token to the best next token, by way of all logits. Where
/// there are `candidates`, to that or to one drawn from all, by way of as few logits as it takes.
pub(super) fn best(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
    slot: &Slot,
) -> Plan {
    match candidates.zip(weights.lm_head().dense()) {
        None => {
            lm_head(p, weights, state);
            choose_best(p, state, slot, &state.logits, false);
        }
        Some(by) => best_by(p, weights, state, by, slot, false),
    }
    p.finish()
}

/// The same by way of `candidates`, with the biases of a slot and the penalties of its text. Empty
/// without `candidates`.
pub(super) fn best_adjusted(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
    slot: &Slot,
) -> Plan {
    if let Some(by) = candidates.zip(weights.lm_head().dense()) {
        best_by(p, weights, state, by, slot, true);
    }
    p.finish()
}

fn best_by(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    (candidates, w): (&Candidates, &Dense),
    slot: &Slot,
    adjusts: bool,
) {
    let Candidates { approximation, adjusted, best, .. } = candidates;
    let State { x, last, .. } = state;
    let Slot { sampling, penalties, token, .. } = slot;
    p.rms_norm(x, &weights.output_norm, last);
    p.gemv_upper(sampling, w, last, approximation, !adjusts);
    let by = if adjusts {
        p.penalize_upper(sampling, slot.adjustments(), token, approximation, adjusted);
        adjusted
    } else {
        approximation
    };
    p.rescore(sampling, penalties, w, last, by, best);
    p.sample_commit(best, token, &slot.sampled);
}

/// From the residual stream of the step's last token to a token drawn from those that top-k, top-p and
/// min-p keep, by way of the logits of those that they may keep. Empty without `candidates`.
pub(super) fn kept(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
    slot: &Slot,
) -> Plan {
    if let Some(by) = candidates.zip(weights.lm_head().dense()) {
        let greatest = kept_logits(p, weights, state, by, slot);
        sift(p, state, slot, &state.logits, greatest);
    }
    p.finish()
}

/// The same for top-p without top-k. Where the logits of the tokens that may be kept do not tell where it
/// ends, the others are computed too.
pub(super) fn kept_by_share(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
    slot: &Slot,
) -> Plan {
    if let Some((by, w)) = candidates.zip(weights.lm_head().dense()) {
        let State { last, logits, selection, .. } = state;
        let greatest = kept_logits(p, weights, state, (by, w), slot);
        p.sample_check(&slot.sampling, selection, &by.rescored);
        p.rescore_rest(&slot.sampling, w, last, logits, selection, &by.rescored);
        sift(p, state, slot, logits, greatest);
    }
    p.finish()
}

/// From the residual stream of the step's last token to the logits of tokens that may be kept, in bins.
/// Gives the keys of the greatest.
fn kept_logits<'a>(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    (candidates, w): (&'a Candidates, &Dense),
    slot: &Slot,
) -> &'a Buffer<u32> {
    let Candidates { approximation, rescored, .. } = candidates;
    let State { x, last, logits, selection, .. } = state;
    p.rms_norm(x, &weights.output_norm, last);
    p.gemv_upper(&slot.sampling, w, last, approximation, false);
    p.rescore_kept(&slot.sampling, w, last, approximation, rescored);
    p.sample_bins(&slot.sampling, logits, &rescored.greatest, selection);
    &rescored.greatest
}

/// From the residual stream of few tokens to the logits after each.
pub(super) fn few_logits(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    let State { x, few_last, few_logits, last_q, .. } = state;
    let norm = &weights.output_norm;
    match (weights.lm_head(), last_q) {
        (Vocabulary::Dense(w), _) => {
            p.rms_norm_of_all(x, norm, few_last);
            p.gemm_lm_head(w, few_last, few_logits);
        }
        (Vocabulary::Packed(w), None) => {
            p.rms_norm_of_all(x, norm, few_last);
            p.gemv_packed_floats(w, few_last, few_logits, Product::Store, true);
        }
        (Vocabulary::Packed(w), Some(q)) => {
            p.rms_norm_quantize_groups(x, norm, q);
            p.gemv_packed(w, q, few_logits, Product::Store, true);
        }
    }
    p.finish()
}

/// From the logits after each of few tokens to the best token after it, of every vocabulary block.
pub(super) fn best_of_each(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    p.best_of_each(slot.adjustments(), &state.tokens, &state.few_logits, &state.few_best);
    p.finish()
}

/// Copies the logits after one of few tokens to `logits`.
pub(super) fn take_logits(p: &mut Recorder, state: &State) -> Plan {
    p.take_logits(&state.few_logits, &state.logits);
    p.finish()
}

/// From the residual stream of the step's last token to `logits`.
pub(super) fn logits(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    lm_head(p, weights, state);
    p.finish()
}

/// The LM head and its input, where it takes the residual stream as the matrices of the blocks do.
/// Every plan of layers then ends by writing the last token's stream.
pub(super) fn lm_head_of_stream<'a>(
    weights: &'a Weights,
    state: &'a State,
) -> Option<(&'a Packed, &'a Stream)> {
    match (weights.lm_head(), &state.stream) {
        (Vocabulary::Packed(w), Some(stream)) if w.format.is_ternary() => Some((w, stream)),
        _ => None,
    }
}

fn lm_head(p: &mut Recorder, weights: &Weights, state: &State) {
    let State { x, last, last_q, logits, .. } = state;
    let norm = &weights.output_norm;
    if let Some((w, stream)) = lm_head_of_stream(weights, state) {
        p.norm_gemv_packed(w, stream, norm.eps, logits);
        return;
    }
    match (weights.lm_head(), last_q) {
        (Vocabulary::Packed(w), Some(q)) => {
            p.rms_norm_quantize_groups_of_last(x, norm, q);
            p.gemv_packed(w, q, logits, Product::Store, false);
        }
        (Vocabulary::Packed(w), None) => {
            p.rms_norm(x, norm, last);
            p.gemv_packed_floats(w, last, logits, Product::Store, false);
        }
        (Vocabulary::Dense(w), _) => {
            p.rms_norm(x, norm, last);
            match w.ty {
                DenseType::F16Split => p.gemv_lm_head_split(w, last, logits),
                DenseType::F16 | DenseType::F32 => p.gemv_lm_head(w, last, logits),
            }
        }
    }
}

/// Makes `adjusted` of `logits`, with the biases of a slot and the penalties of its text.
pub(super) fn penalize(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    p.penalize(slot.adjustments(), &slot.token, &state.logits, &state.adjusted);
    p.finish()
}

/// From logits to a token: the best one, or one drawn from all.
pub(super) fn drawn(p: &mut Recorder, state: &State, slot: &Slot, logits: &Buffer<f32>) -> Plan {
    choose_best(p, state, slot, logits, true);
    p.finish()
}

fn choose_best(p: &mut Recorder, state: &State, slot: &Slot, logits: &Buffer<f32>, ranked: bool) {
    p.sample_best(&slot.sampling, logits, &state.best, ranked);
    p.sample_commit(&state.best, &slot.token, &slot.sampled);
}

/// From logits to a token drawn from those that top-k, top-p and min-p keep.
pub(super) fn filtered(p: &mut Recorder, state: &State, slot: &Slot, logits: &Buffer<f32>) -> Plan {
    let greatest = &state.selection.greatest;
    p.sample_max(logits, greatest);
    p.sample_bins(&slot.sampling, logits, greatest, &state.selection);
    sift(p, state, slot, logits, greatest);
    p.finish()
}

/// From logits in bins to a token.
fn sift(
    p: &mut Recorder,
    state: &State,
    slot: &Slot,
    logits: &Buffer<f32>,
    greatest: &Buffer<u32>,
) {
    let State { selection, best, .. } = state;
    p.sample_sift(&slot.sampling, logits, greatest, selection, best);
    p.sample_decide(&slot.sampling, selection, best, &slot.token, &slot.sampled);
}

/// A record of the model's `logits`, of which the slot's token was chosen.
pub(super) fn logprobs(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    let rows = (&state.logits, Extent::Fixed(1));
    tell(p, state, slot, &slot.token, rows);
    p.finish()
}

/// A record of the model's logits after each token of a draft pass.
pub(super) fn logprobs_each(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    let drafted = state.tokens.range(state.first_token(), state.few.max(1));
    tell(p, state, slot, &drafted, (&state.few_logits, Extent::Tokens(1)));
    p.finish()
}

/// A record of the model's logits after each of few tokens, for the token that follows. The records are
/// those of the first slot: who reads them has submitted the work that makes them.
pub(super) fn scores(p: &mut Recorder, state: &State) -> Plan {
    if let Some(slot) = state.slots.first() {
        tell(p, state, slot, &state.scored, (&state.few_logits, Extent::Tokens(1)));
    }
    p.finish()
}

fn tell(
    p: &mut Recorder,
    state: &State,
    slot: &Slot,
    tokens: &Buffer<u32>,
    (logits, rows): (&Buffer<f32>, Extent),
) {
    let n_vocab = state.logits.len();
    p.logprob_blocks(n_vocab, &slot.sampling, logits, rows, &state.likeliest);
    p.logprob_record(
        n_vocab,
        &slot.sampling,
        tokens,
        (logits, rows),
        &state.likeliest,
        &slot.records,
    );
}
