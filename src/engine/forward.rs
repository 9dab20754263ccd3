//! The forward pass as a list of kernels. [`crate::reference`] is the same list in plain Rust.

use super::lm_head::Candidates;
use super::state::{Activations, State};
use super::weights::{Block, Matrix, Vocabulary, Weights};
use crate::gpu::{Buffer, Plan, Recorder};
use crate::kernels::{
    DenseType, GATED_LANES, KvCache, MAX_HEAD_DIM, MAX_NORMED_COLUMNS, MAX_NORMED_PACKED_COLUMNS,
    MAX_ROPE_COLUMNS, Norm, Packed, Product, Quantized, QuantizedGroups, Ternary,
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

/// The inputs of a matrix.
enum Input<'a> {
    Rows(&'a Quantized),
    Groups(&'a QuantizedGroups),
    Floats(&'a Buffer<f32>),
}

/// Tokens through all layers: keys and values into the cache, the residual stream into `x`.
pub(super) fn layers(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
    width: Width,
) -> Plan {
    let State { x, h, qkv, q, rope_table, ff, ff_h, .. } = state;
    embed(p, config, weights, state);
    for (block, cache) in weights.blocks.iter().zip(&state.cache) {
        let input = normed(p, x, &block.attn_norm, h);
        multiply(p, width, &block.attn_qkv, &input, qkv, Product::Store);
        rotate(p, block, qkv, rope_table, q, cache);
        attend(p, width, config, state, cache);
        let input = merged(p, config, block, state);
        multiply(p, width, &block.attn_output, &input, x, Product::Add);

        let input = normed(p, x, &block.ffn_norm, h);
        let gated = Product::Gated(config.architecture.activation);
        multiply(p, width, &block.ffn_gate_up, &input, ff, gated);
        let input = match &block.ffn_sub_norm {
            Some(norm) => normed(p, ff, norm, ff_h),
            None => quantized(p, ff, config.n_ff, ff_h),
        };
        multiply(p, width, &block.ffn_down, &input, x, Product::Add);
    }
    p.finish()
}

fn embed(p: &mut Recorder, config: &Config, weights: &Weights, state: &State) {
    let State { tokens, x, .. } = state;
    match &weights.token_embd {
        Vocabulary::Dense(embd) => p.embed(tokens, embd, config.embedding_scale, x),
        Vocabulary::Packed(embd) => p.embed_packed(tokens, embd, config.embedding_scale, x),
    }
}

fn rotate(
    p: &mut Recorder,
    block: &Block,
    qkv: &Buffer<f32>,
    rope_table: &Buffer<[f32; 2]>,
    q: &Buffer<f32>,
    cache: &KvCache,
) {
    match &block.head_norms {
        None => p.rope_kv(qkv, rope_table, q, cache),
        Some([of_q, of_k]) => p.norm_rope_kv(qkv, [of_q, of_k], rope_table, q, cache),
    }
}

/// The norm of every token of `x`, as the input of a matrix.
fn normed<'a>(p: &mut Recorder, x: &Buffer<f32>, norm: &Norm, h: &'a Activations) -> Input<'a> {
    match h {
        Activations::Rows(q) => {
            p.rms_norm_quantize(x, norm, q);
            Input::Rows(q)
        }
        Activations::Groups(q) => {
            p.rms_norm_quantize_groups(x, norm, q);
            Input::Groups(q)
        }
        Activations::Floats(floats) => {
            p.rms_norm_of_all(x, norm, floats);
            Input::Floats(floats)
        }
    }
}

/// Every token of `x` `[n_tokens, k]`, as the input of a matrix.
fn quantized<'a>(p: &mut Recorder, x: &'a Buffer<f32>, k: usize, h: &'a Activations) -> Input<'a> {
    match h {
        Activations::Rows(q) => {
            p.quantize_rows(x, k, q);
            Input::Rows(q)
        }
        Activations::Groups(q) => {
            p.quantize_groups(x, k, q);
            Input::Groups(q)
        }
        Activations::Floats(_) => Input::Floats(x),
    }
}

/// The outputs of attention, merged from its splits.
fn merged<'a>(p: &mut Recorder, config: &Config, block: &Block, state: &'a State) -> Input<'a> {
    let State { h, q, partials, .. } = state;
    if let (Some(norm), Activations::Rows(h)) = (&block.attn_sub_norm, h) {
        p.attention_merge(partials, norm, h);
        return Input::Rows(h);
    }
    if let (None, Activations::Groups(h)) = (&block.attn_sub_norm, h) {
        p.merge_quantize(partials, h);
        return Input::Groups(h);
    }
    // The queries have been used.
    p.merge_splits(partials, q);
    match &block.attn_sub_norm {
        Some(norm) => normed(p, q, norm, h),
        None => quantized(p, q, config.n_embd_q(), h),
    }
}

/// One token takes a matrix-vector product, several a matrix product that reads each weight once.
fn multiply(
    p: &mut Recorder,
    width: Width,
    w: &Matrix,
    x: &Input<'_>,
    y: &Buffer<f32>,
    product: Product,
) {
    let several = width != Width::One;
    match (w, x) {
        (Matrix::Ternary(w), Input::Rows(x)) => match width {
            Width::One => p.gemv_i2s(w, x, y, product),
            Width::Few if p.tuning().tiles => p.gemm_few(w, x, y, product),
            Width::Chunk if p.tuning().tiles => p.gemm_i2s(w, x, y, product),
            Width::Few | Width::Chunk => p.gemv_i2s_of_several(w, x, y, product),
        },
        (Matrix::Packed(w), Input::Groups(x)) => match width {
            Width::Chunk if p.tuning().tiles && w.fits_tiles() => p.gemm_packed(w, x, y, product),
            _ => p.gemv_packed(w, x, y, product, several),
        },
        (Matrix::Packed(w), Input::Floats(x)) => p.gemv_packed_floats(w, x, y, product, several),
        // The inputs are chosen by the matrices, which are all of one kind.
        _ => debug_assert!(false, "a matrix with the inputs of another kind"),
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
        && config.head_dim <= MAX_HEAD_DIM;
    let blocks: Option<Vec<_>> = weights.blocks.iter().map(|block| block.fusible(config)).collect();
    match (blocks, &state.h, &state.ff_h) {
        _ if !p.tuning().fused => {}
        (Some(blocks), ..) if fits => return fused(p, config, weights, &blocks, state),
        (None, Activations::Groups(h), Activations::Groups(ff_h))
            if config.n_embd <= MAX_NORMED_PACKED_COLUMNS && p.tuning().lanes >= GATED_LANES =>
        {
            let blocks: Option<Vec<_>> = weights.blocks.iter().map(Block::fusible_packed).collect();
            if let Some(blocks) = blocks {
                return fused_packed(p, config, weights, &blocks, state, [h, ff_h]);
            }
        }
        _ => {}
    }
    layers(p, config, weights, state, Width::One)
}

/// A block whose products can norm their inputs.
struct Fusible<'a> {
    attn_norm: &'a Norm,
    attn_qkv: &'a Ternary,
    attn_sub_norm: &'a Norm,
    attn_output: &'a Ternary,
    ffn_norm: &'a Norm,
    ffn_gate_up: &'a Ternary,
    ffn_sub_norm: &'a Norm,
    ffn_down: &'a Ternary,
}

impl Block {
    /// The block, if all its matrices are ternary and have a norm before them.
    fn fusible(&self, config: &Config) -> Option<Fusible<'_>> {
        let attn_qkv = self.attn_qkv.ternary()?;
        (self.head_norms.is_none() && attn_qkv.ends_with_heads(config.head_dim)).then_some(())?;
        Some(Fusible {
            attn_norm: &self.attn_norm,
            attn_qkv,
            attn_sub_norm: self.attn_sub_norm.as_ref()?,
            attn_output: self.attn_output.ternary()?,
            ffn_norm: &self.ffn_norm,
            ffn_gate_up: self.ffn_gate_up.ternary()?,
            ffn_sub_norm: self.ffn_sub_norm.as_ref()?,
            ffn_down: self.ffn_down.ternary()?,
        })
    }
}

/// The same steps in half the dispatches: with a single token, a card waits for those rather than
/// for memory. In each product, each workgroup norms the input by itself.
fn fused(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    blocks: &[Fusible<'_>],
    state: &State,
) -> Plan {
    let State { x, q, rope_table, partials, ff, .. } = state;
    let gated = Product::Gated(config.architecture.activation);
    embed(p, config, weights, state);
    for (block, cache) in blocks.iter().zip(&state.cache) {
        p.norm_gemv_rope_kv(block.attn_qkv, x, block.attn_norm, rope_table, q, cache);
        p.attention_decode(q, cache, partials);
        p.merge_norm_gemv(block.attn_output, partials, block.attn_sub_norm, x);

        p.norm_gemv(block.ffn_gate_up, x, block.ffn_norm, ff, gated);
        p.norm_gemv(block.ffn_down, ff, block.ffn_sub_norm, x, Product::Add);
    }
    p.finish()
}

/// A block of packed matrices that norm their inputs.
struct FusiblePacked<'a> {
    block: &'a Block,
    attn_qkv: &'a Packed,
    attn_output: &'a Packed,
    ffn_gate_up: &'a Packed,
    ffn_down: &'a Packed,
}

impl Block {
    /// The block, if its matrices have codes of 2 bits and it has no sub-norms.
    fn fusible_packed(&self) -> Option<FusiblePacked<'_>> {
        let has_sub_norms = self.attn_sub_norm.is_some() || self.ffn_sub_norm.is_some();
        let ffn_gate_up = self.ffn_gate_up.packed()?;
        let whole_groups = ffn_gate_up.shards.iter().all(|shard| shard.rows.end.is_multiple_of(32));
        let fusible = FusiblePacked {
            block: self,
            attn_qkv: self.attn_qkv.packed()?,
            attn_output: self.attn_output.packed()?,
            ffn_gate_up,
            ffn_down: self.ffn_down.packed()?,
        };
        let normed = [fusible.attn_qkv, ffn_gate_up];
        let fits = normed.iter().all(|w| w.format.bits == 2);
        (fits && whole_groups && !has_sub_norms).then_some(fusible)
    }
}

/// The same steps as [`layers`] with packed matrices, in half the dispatches.
fn fused_packed(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    blocks: &[FusiblePacked<'_>],
    state: &State,
    [h, ff_h]: [&QuantizedGroups; 2],
) -> Plan {
    let State { x, qkv, q, rope_table, partials, .. } = state;
    embed(p, config, weights, state);
    for (FusiblePacked { block, attn_qkv, attn_output, ffn_gate_up, ffn_down }, cache) in
        blocks.iter().zip(&state.cache)
    {
        p.norm_gemv_packed(attn_qkv, x, &block.attn_norm, qkv);
        rotate(p, block, qkv, rope_table, q, cache);
        attend(p, Width::One, config, state, cache);
        p.merge_quantize(partials, h);
        p.gemv_packed(attn_output, h, x, Product::Add, false);

        let activation = config.architecture.activation;
        p.norm_gated_packed(ffn_gate_up, x, &block.ffn_norm, activation, ff_h);
        p.gemv_packed(ffn_down, ff_h, x, Product::Add, false);
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
    match candidates.zip(weights.lm_head().dense()) {
        None => {
            lm_head(p, weights, state);
            p.sample_best(sampling, logits, threshold, best);
            p.sample_commit(best, tokens, sampled);
        }
        Some((Candidates { approximation, best, .. }, w)) => {
            p.rms_norm(x, &weights.output_norm, last);
            p.gemv_upper(w, last, approximation);
            p.rescore(w, last, approximation, best);
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
    let State { x, few_last, few_logits, few_best, last_q, .. } = state;
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
    p.best_of_each(config.n_vocab, few_logits, few_best);
    p.finish()
}

/// From the residual stream of the step's last token to `logits`.
pub(super) fn logits(p: &mut Recorder, weights: &Weights, state: &State) -> Plan {
    lm_head(p, weights, state);
    p.finish()
}

fn lm_head(p: &mut Recorder, weights: &Weights, state: &State) {
    let State { x, last, last_q, logits, .. } = state;
    let norm = &weights.output_norm;
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

/// From `logits` to a token drawn by temperature, top-k, top-p and min-p.
pub(super) fn sampled(p: &mut Recorder, state: &State) -> Plan {
    let State { logits, sampling, threshold, best, tokens, sampled, .. } = state;
    p.sample_filter(sampling, logits, threshold);
    p.sample_best(sampling, logits, threshold, best);
    p.sample_commit(best, tokens, sampled);
    p.finish()
}
