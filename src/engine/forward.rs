//! The forward pass as a list of kernels. [`crate::reference`] is the same list in plain Rust.

use super::lm_head::Candidates;
use super::state::State;
use super::weights::Weights;
use crate::gpu::{Buffer, Plan, Recorder};
use crate::kernels::{
    DenseType, KvCache, MAX_HEAD_DIM, MAX_NORMED_COLUMNS, MAX_ROPE_COLUMNS, Product, Quantized,
    Ternary,
};
use crate::model::Config;

/// How many tokens a plan is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Width {
    /// One.
    One,
    /// Up to [`FEW`](crate::kernels::FEW): a draft pass.
    Few,
    /// A chunk of a prompt.
    Chunk,
}

/// Tokens through all layers: keys and values into the cache, the residual stream into `x`.
pub(super) fn layers(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
    width: Width,
) -> Plan {
    let State { tokens, x, h, qkv, q, rope_table, partials, ff, ff_q, .. } = state;
    p.embed(tokens, &weights.token_embd, x);
    for (block, cache) in weights.blocks.iter().zip(&state.cache) {
        p.rms_norm_quantize(x, &block.attn_norm, h);
        multiply(p, width, &block.attn_qkv, h, qkv, Product::Store);
        p.rope_kv(qkv, rope_table, q, cache);
        attend(p, width, config, state, cache);
        p.attention_merge(partials, &block.attn_sub_norm, h);
        multiply(p, width, &block.attn_output, h, x, Product::Add);

        p.rms_norm_quantize(x, &block.ffn_norm, h);
        multiply(p, width, &block.ffn_gate_up, h, ff, Product::Relu2Glu);
        p.rms_norm_quantize(ff, &block.ffn_sub_norm, ff_q);
        multiply(p, width, &block.ffn_down, ff_q, x, Product::Add);
    }
    p.finish()
}

/// One token takes a matrix-vector product, several a matrix product that reads each weight once.
fn multiply(
    p: &mut Recorder,
    width: Width,
    w: &Ternary,
    x: &Quantized,
    y: &Buffer<f32>,
    product: Product,
) {
    match width {
        Width::One => p.gemv_i2s(w, x, y, product),
        Width::Few if p.tuning().tiles => p.gemm_few(w, x, y, product),
        Width::Chunk if p.tuning().tiles => p.gemm_i2s(w, x, y, product),
        Width::Few | Width::Chunk => p.gemv_i2s_of_several(w, x, y, product),
    }
}

fn attend(p: &mut Recorder, width: Width, config: &Config, state: &State, cache: &KvCache) {
    let State { q, partials, .. } = state;
    match width {
        _ if !p.tuning().tiles || config.head_dim > MAX_HEAD_DIM => {
            p.attention(q, cache, partials);
        }
        Width::Chunk => p.attention_prefill(q, cache, partials),
        Width::One | Width::Few => p.attention_decode(q, cache, partials),
    }
}

/// One token through all layers, as [`layers`].
pub(super) fn decode(p: &mut Recorder, config: &Config, weights: &Weights, state: &State) -> Plan {
    let fits = config.n_embd <= MAX_ROPE_COLUMNS
        && config.n_ff <= MAX_NORMED_COLUMNS
        && config.head_dim <= MAX_HEAD_DIM
        && weights.blocks.iter().all(|block| block.attn_qkv.ends_with_heads(config.head_dim));
    if p.tuning().fused && fits {
        fused(p, weights, state)
    } else {
        layers(p, config, weights, state, Width::One)
    }
}

/// The same steps in half the dispatches: with a single token, a card waits for those rather than
/// for memory. In each product, each workgroup norms the input by itself.
fn fused(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    let State { tokens, x, q, rope_table, partials, ff, .. } = state;
    p.embed(tokens, &weights.token_embd, x);
    for (block, cache) in weights.blocks.iter().zip(&state.cache) {
        p.norm_gemv_rope_kv(&block.attn_qkv, x, &block.attn_norm, rope_table, q, cache);
        p.attention_decode(q, cache, partials);
        p.merge_norm_gemv(&block.attn_output, partials, &block.attn_sub_norm, x);

        p.norm_gemv(&block.ffn_gate_up, x, &block.ffn_norm, ff, Product::Relu2Glu);
        p.norm_gemv(&block.ffn_down, ff, &block.ffn_sub_norm, x, Product::Add);
    }
    p.finish()
}

/// From the residual stream of the step's last token to the best next token: by way of all logits,
/// or, where there are `candidates`, of as few as it takes.
pub(super) fn greedy(
    p: &mut Recorder,
    weights: &Weights,
    state: &State,
    candidates: Option<&Candidates>,
) -> Plan {
    let State { x, last, logits, sampling, threshold, best, tokens, sampled, .. } = state;
    p.rms_norm(x, &weights.output_norm, last);
    let embd = &weights.token_embd;
    match candidates {
        None => {
            lm_head(p, weights, state);
            p.sample_best(sampling, logits, threshold, best);
            p.sample_commit(best, tokens, sampled);
        }
        Some(Candidates { approximation, best, .. }) => {
            p.gemv_upper(embd, last, approximation);
            p.rescore(embd, last, approximation, best);
            p.sample_commit(best, tokens, sampled);
        }
    }
    p.finish()
}

/// From the residual stream of few tokens to the best token after each, of every vocabulary block.
pub(super) fn greedy_each(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
) -> Plan {
    let State { x, few_last, few_logits, few_best, .. } = state;
    p.rms_norm_of_all(x, &weights.output_norm, few_last);
    p.gemm_lm_head(&weights.token_embd, few_last, few_logits);
    p.best_of_each(config.n_vocab, few_logits, few_best);
    p.finish()
}

/// From the residual stream of the step's last token to `logits`.
pub(super) fn logits(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    p.rms_norm(&state.x, &weights.output_norm, &state.last);
    lm_head(p, weights, state);
    p.finish()
}

fn lm_head(p: &mut Recorder, weights: &Weights, State { last, logits, .. }: &State) {
    let embd = &weights.token_embd;
    match embd.ty {
        DenseType::F16Split => p.gemv_lm_head_split(embd, last, logits),
        DenseType::F16 | DenseType::F32 => p.gemv_lm_head(embd, last, logits),
    }
}

/// From `logits` to a token drawn by temperature, top-k, top-p and min-p.
pub(super) fn sampled(p: &mut Recorder, state: &State) -> Plan {
    let State { logits, sampling, threshold, best, tokens, sampled, .. } = state;
    p.sample_filter(sampling, logits, threshold);
    p.sample_best(sampling, logits, threshold, best);
    p.sample_commit(best, tokens, sampled);
    p.finish()
}
