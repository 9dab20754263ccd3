//! The forward pass as a list of kernels. [`crate::reference`] is the same list in plain Rust.

use super::head::Candidates;
use super::state::State;
use super::weights::Weights;
use crate::gpu::{Buffer, Plan, Recorder};
use crate::kernels::{
    DenseType, MAX_HEAD_DIM, MAX_NORMED_COLUMNS, MAX_ROPE_COLUMNS, Product, Quantized, Ternary,
    attention, attention_decode, attention_merge, attention_prefill, best_of_each, embed, gemm_few,
    gemm_head, gemm_i2s, gemv_head, gemv_head_split, gemv_i2s, gemv_upper, merge_norm_gemv,
    norm_gemv, norm_gemv_rope_kv, rescore, rms_norm, rms_norm_quantize, rope_kv, sample_best,
    sample_commit, sample_filter,
};
use crate::model::Config;

/// How many tokens a plan is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Width {
    /// One.
    One,
    /// Up to [`FEW`](crate::kernels::FEW).
    Few,
    /// A chunk of a prompt.
    Chunk,
}

/// Tokens through all layers: keys and values into the cache, the residual stream into `x`.
pub(super) fn layers(
    recorder: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
    width: Width,
) -> Plan {
    let State { step, attention: shape, x, h, qkv, q, parts, ff, ff_q, .. } = state;
    let eps = config.eps;
    let mut plan = Plan::default();
    let p = &mut plan;
    let r = recorder;
    // One token: a matrix-vector product. Many: a matrix product that reads each weight once; but a
    // CPU has no use for tiles in workgroup memory, and pays for every barrier.
    let software = r.gpu().software;
    let matmul = |r: &mut Recorder,
                  p: &mut Plan,
                  w: &Ternary,
                  x: &Quantized,
                  y: &Buffer<f32>,
                  product: Product| match width {
        Width::One => gemv_i2s(r, p, step, 1, w, x, y, product),
        Width::Few if !software => gemm_few(r, p, step, w, x, y, product),
        Width::Chunk if !software => gemm_i2s(r, p, step, w, x, y, product),
        _ => gemv_i2s(r, p, step, 4, w, x, y, product),
    };
    let attention = match width {
        _ if software || config.head_dim > MAX_HEAD_DIM => attention,
        Width::Chunk => attention_prefill,
        _ => attention_decode,
    };

    embed(r, p, &state.tokens, &weights.token_embd, x);
    for (block, (k_cache, v_cache)) in weights.blocks.iter().zip(&state.cache) {
        rms_norm_quantize(r, p, x, &block.attn_norm, h, eps);
        matmul(r, p, &block.attn_qkv, h, qkv, Product::Store);
        rope_kv(r, p, step, shape, qkv, &state.turns, q, k_cache, v_cache);
        attention(r, p, step, shape, q, k_cache, v_cache, parts);
        attention_merge(r, p, step, shape, parts, &block.attn_sub_norm, h, eps);
        matmul(r, p, &block.attn_output, h, x, Product::Add);

        rms_norm_quantize(r, p, x, &block.ffn_norm, h, eps);
        matmul(r, p, &block.ffn_gate_up, h, ff, Product::Relu2Glu);
        rms_norm_quantize(r, p, ff, &block.ffn_sub_norm, ff_q, eps);
        matmul(r, p, &block.ffn_down, ff_q, x, Product::Add);
    }
    plan
}

/// One token through all layers, as [`layers`].
pub(super) fn decode(
    recorder: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
) -> Plan {
    let gpu = recorder.gpu();
    let fits = config.n_embd <= MAX_ROPE_COLUMNS
        && config.n_ff <= MAX_NORMED_COLUMNS
        && config.head_dim <= MAX_HEAD_DIM
        && weights.blocks.iter().all(|block| block.attn_qkv.ends_with_heads(config.head_dim));
    // A CPU would norm the same values many times over to save dispatches that cost it nothing.
    if gpu.software || !fits {
        return layers(recorder, config, weights, state, Width::One);
    }
    fused(recorder, config, weights, state)
}

/// The same list of steps in half the dispatches: a card waits for those rather than for memory when
/// there is one token only. Each product norms its input, each workgroup for itself.
fn fused(recorder: &mut Recorder, config: &Config, weights: &Weights, state: &State) -> Plan {
    let State { step, attention: shape, x, q, parts, ff, turns, .. } = state;
    let eps = config.eps;
    let mut plan = Plan::default();
    let p = &mut plan;
    let r = recorder;
    embed(r, p, &state.tokens, &weights.token_embd, x);
    for (block, (k_cache, v_cache)) in weights.blocks.iter().zip(&state.cache) {
        let (qkv, norm) = (&block.attn_qkv, &block.attn_norm);
        norm_gemv_rope_kv(r, p, step, shape, qkv, x, norm, turns, q, k_cache, v_cache, eps);
        attention_decode(r, p, step, shape, q, k_cache, v_cache, parts);
        merge_norm_gemv(r, p, step, shape, &block.attn_output, parts, &block.attn_sub_norm, x, eps);

        norm_gemv(r, p, &block.ffn_gate_up, x, &block.ffn_norm, ff, Product::Relu2Glu, eps);
        norm_gemv(r, p, &block.ffn_down, ff, &block.ffn_sub_norm, x, Product::Add, eps);
    }
    plan
}

/// The step's last token from the residual stream to the best next token: by way of all logits, or,
/// where there are `candidates`, of as many as it takes.
pub(super) fn greedy(
    recorder: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
) -> Plan {
    let State { step, last, logits, sampling, threshold, best, tokens, sampled, .. } = state;
    let Some(Candidates { error, leads, best: best_candidates, .. }) = candidates else {
        let mut plan = self::logits(recorder, config, weights, state);
        sample_best(recorder, &mut plan, sampling, step, logits, threshold, best);
        sample_commit(recorder, &mut plan, best, tokens, sampled);
        return plan;
    };
    let embd = &weights.token_embd;
    let mut plan = Plan::default();
    let p = &mut plan;
    rms_norm(recorder, p, step, &state.x, &weights.output_norm, last, false, config.eps);
    // All logits are not wanted, so theirs is the place of the approximate ones.
    gemv_upper(recorder, p, embd, last, error, logits, leads);
    rescore(recorder, p, embd, last, error, logits, leads, best_candidates);
    sample_commit(recorder, p, best_candidates, tokens, sampled);
    plan
}

/// From the residual stream of few tokens to the best token after each, of every stretch of the vocabulary.
pub(super) fn greedy_each(
    recorder: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
) -> Plan {
    let State { step, x, few_last, few_logits, few_best, .. } = state;
    let mut plan = Plan::default();
    let p = &mut plan;
    rms_norm(recorder, p, step, x, &weights.output_norm, few_last, true, config.eps);
    gemm_head(recorder, p, &weights.token_embd, few_last, few_logits);
    best_of_each(recorder, p, config.n_vocab, few_logits, few_best);
    plan
}

/// The step's last token from the residual stream to `logits`.
pub(super) fn logits(
    recorder: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
) -> Plan {
    let State { step, x, last, logits, .. } = state;
    let embd = &weights.token_embd;
    let mut plan = Plan::default();
    rms_norm(recorder, &mut plan, step, x, &weights.output_norm, last, false, config.eps);
    match embd.ty {
        DenseType::F16Split => gemv_head_split(recorder, &mut plan, embd, last, logits),
        DenseType::F16 | DenseType::F32 => gemv_head(recorder, &mut plan, embd, last, logits),
    }
    plan
}

/// From `logits` to a token drawn by temperature, top-k, top-p and min-p.
pub(super) fn sampled(recorder: &mut Recorder, state: &State) -> Plan {
    let State { step, logits, sampling, threshold, best, tokens, sampled, .. } = state;
    let mut plan = Plan::default();
    sample_filter(recorder, &mut plan, sampling, logits, threshold);
    sample_best(recorder, &mut plan, sampling, step, logits, threshold, best);
    sample_commit(recorder, &mut plan, best, tokens, sampled);
    plan
}
