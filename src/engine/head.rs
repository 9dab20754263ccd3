//! The kernels from the residual stream to logits, and to the log-probabilities of tokens.

use super::adapters::{Deltas, HeadDelta};
use super::state::{Slot, State};
use super::weights::{Vocabulary, Weights};
use crate::gpu::{Buffer, Extent, Plan, Recorder};
use crate::kernels::{Added, Batch, DenseType, Packed, Product, Stream};

/// From the residual stream of few tokens to the logits after each.
pub(super) fn logits_of_few(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    let State { x, few_last, few_logits, last_q, .. } = state;
    let norm = &weights.output_norm;
    let y = adapted(state).map_or(few_logits, |(_, head)| &head.apart);
    match (weights.lm_head(), last_q) {
        (Vocabulary::Dense(w), _) => {
            p.rms_norm_of_all(x, norm, few_last);
            p.gemm_lm_head(w, few_last, y);
        }
        (Vocabulary::Packed(w), None) => {
            p.rms_norm_of_all(x, norm, few_last);
            p.gemv_packed_floats(w, few_last, y, Product::Store, true);
        }
        (Vocabulary::Packed(w), Some(q)) => {
            p.rms_norm_quantize_groups(x, norm, q);
            p.gemv_packed(w, q, y, Product::Store, true);
        }
    }
    add_pairs(p, weights, state, few_logits, Batch::Few);
    p.finish()
}

/// The pairs on the LM head, if there are any.
fn adapted(state: &State) -> Option<(&Deltas, &HeadDelta)> {
    let deltas = state.deltas.as_ref()?;
    Some((deltas, deltas.head.as_ref()?))
}

/// If there are pairs on the LM head, adds what they make of the residual stream to the logits, which were
/// computed apart.
fn add_pairs(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    logits: &Buffer<f32>,
    batch: Batch,
) {
    let Some((Deltas { thin: u, .. }, HeadDelta { delta, apart })) = adapted(state) else { return };
    p.adapter_thin(&delta.thin, &state.x, Some(&weights.output_norm), u, batch);
    p.adapter_add(Added { wide: &delta.wide, u }, apart, logits, Product::Store, batch);
}

/// From the residual stream of any number of tokens to the hidden state of each.
pub(super) fn hidden(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    p.rms_norm_of_all(&state.x, &weights.output_norm, &state.hidden);
    p.finish()
}

/// Finds the best token after each of few tokens, in every vocabulary block. Takes the logits after
/// each, and the biases, penalties and masks of a slot.
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

/// Records the LM head, with its input, if it takes the residual stream as the matrices of the
/// blocks do. In that case every plan of layers ends by writing the last token's stream.
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
    let y = adapted(state).map_or(logits, |(_, head)| &head.apart);
    match (weights.lm_head(), last_q, lm_head_of_stream(weights, state)) {
        (_, _, Some((w, stream))) => p.norm_gemv_packed(w, stream, norm.eps, y),
        (Vocabulary::Packed(w), Some(q), None) => {
            p.rms_norm_quantize_groups_of_last(x, norm, q);
            p.gemv_packed(w, q, y, Product::Store, false);
        }
        (Vocabulary::Packed(w), None, None) => {
            p.rms_norm(x, norm, last);
            p.gemv_packed_floats(w, last, y, Product::Store, false);
        }
        (Vocabulary::Dense(w), _, None) => {
            p.rms_norm(x, norm, last);
            match w.ty {
                DenseType::F16Split => p.gemv_lm_head_split(w, last, y),
                DenseType::F16 | DenseType::F32 => p.gemv_lm_head(w, last, y),
            }
        }
    }
    add_pairs(p, weights, state, logits, Batch::Last);
}

/// Makes a record of the model's `logits`, from which the slot's token was chosen.
pub(super) fn logprobs(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    let rows = (&state.logits, Extent::Fixed(1));
    record(p, state, slot, &slot.token, rows);
    p.finish()
}

/// Makes a record of the model's logits after each token of a draft pass.
pub(super) fn logprobs_each(p: &mut Recorder, state: &State, slot: &Slot) -> Plan {
    let drafted = state.tokens.range(state.first_token(), state.few.max(1));
    record(p, state, slot, &drafted, (&state.few_logits, Extent::Tokens(1)));
    p.finish()
}

/// Makes a record of the model's logits after each of few tokens, for the known token that follows.
/// The records are in the memory of the first slot. This is safe, because they are read back in the
/// same submission.
pub(super) fn scores(p: &mut Recorder, state: &State) -> Plan {
    if let Some(slot) = state.slots.first() {
        record(p, state, slot, &state.scored, (&state.few_logits, Extent::Tokens(1)));
    }
    p.finish()
}

fn record(
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
