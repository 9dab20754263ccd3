//! The forward pass as a list of kernels. [`crate::reference`] is the same list in plain Rust.

use super::head::lm_head_of_stream;
use super::state::{Activations, State};
use super::weights::{Block, Matrix, Vocabulary, Weights};
use crate::gpu::{Buffer, Plan, Recorder};
use crate::kernels::{
    Heads, KvCache, KvType, Norm, Packed, Product, Quantized, QuantizedGroups, Stream, Ternary,
    max_normed_columns, max_rope_columns,
};
use crate::model::Config;

/// Tokens for which [`Width::Short`] is faster than [`Width::Chunk`]: a tile's.
pub(super) const SHORT: usize = 32;

/// How many tokens a plan is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Width {
    /// One.
    One,
    /// Up to [`FEW`](crate::kernels::FEW): a draft pass.
    Few,
    /// Up to [`SHORT`]: a chunk of a short prompt.
    Short,
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
    let State { x, h, qkv, q, rope_table, ff, .. } = state;
    let has_rows = matches!(width, Width::One | Width::Few);
    embed(p, config, weights, state, has_rows);
    for (block, cache) in weights.blocks.iter().zip(&state.cache) {
        let input = normed(p, x, &block.attn_norm, h);
        multiply(p, width, &block.attn_qkv, &input, qkv, Product::Store);
        rotate(p, block, qkv, rope_table, q, cache, has_rows);
        attend(p, width, state, cache);
        let input = merged(p, config, block, state);
        multiply(p, width, &block.attn_output, &input, x, Product::Add);

        let input = normed(p, x, &block.ffn_norm, h);
        let product = Product::Gated(config.architecture.activation);
        multiply(p, width, &block.ffn_gate_up, &input, ff, product);
        let input = gated(p, config, block.ffn_sub_norm.as_ref(), state);
        multiply(p, width, &block.ffn_down, &input, x, Product::Add);
    }
    if let (Some((_, stream)), false) = (lm_head_of_stream(weights, state), has_rows) {
        p.stream_of_last(x, &weights.output_norm, stream);
    }
    p.finish()
}

fn embed(p: &mut Recorder, config: &Config, weights: &Weights, state: &State, has_rows: bool) {
    let State { tokens, x, .. } = state;
    match &weights.token_embd {
        Vocabulary::Dense(embd) => p.embed(tokens, embd, config.embedding_scale, x, has_rows),
        Vocabulary::Packed(embd) => {
            p.embed_packed(tokens, embd, config.embedding_scale, x, has_rows)
        }
    }
}

fn rotate(
    p: &mut Recorder,
    block: &Block,
    qkv: &Buffer<f32>,
    rope_table: &Buffer<[f32; 2]>,
    q: &Buffer<f32>,
    cache: &KvCache,
    has_rows: bool,
) {
    match &block.head_norms {
        None => p.rope_kv(qkv, rope_table, q, cache, has_rows),
        Some(norms) => p.norm_rope_kv(qkv, norms, rope_table, q, cache, has_rows),
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
    match (&block.attn_sub_norm, h) {
        (norm, Activations::Rows(h)) => {
            p.attention_merge(partials, norm.as_ref(), h);
            Input::Rows(h)
        }
        (None, Activations::Groups(h)) => {
            p.merge_quantize(partials, h);
            Input::Groups(h)
        }
        (norm, h) => {
            // The queries have been used.
            p.merge_splits(partials, q);
            match norm {
                Some(norm) => normed(p, q, norm, h),
                None => quantized(p, q, config.n_embd_q(), h),
            }
        }
    }
}

/// The gated activation, as the input of down.
fn gated<'a>(
    p: &mut Recorder,
    config: &Config,
    norm: Option<&Norm>,
    state: &'a State,
) -> Input<'a> {
    let State { ff, ff_h, .. } = state;
    match norm {
        Some(norm) => normed(p, ff, norm, ff_h),
        None => quantized(p, ff, config.n_ff, ff_h),
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
            // It reads the weights once for every few tokens. With tiles, small matrices have too few
            // workgroups to fill a card.
            Width::Few | Width::Short if p.tuning().tiles => p.gemm_few(w, x, y, product),
            Width::Chunk if p.tuning().tiles && p.gpu().matrix_units => {
                p.gemm_i2s_matrix(w, x, y, product);
            }
            Width::Chunk if p.tuning().tiles => p.gemm_i2s(w, x, y, product),
            _ => p.gemv_i2s_of_several(w, x, y, product),
        },
        (Matrix::Packed(w), Input::Groups(x)) => match width {
            Width::Short | Width::Chunk if p.tuning().tiles && w.fits_tiles() => {
                p.gemm_packed(w, x, y, product, width == Width::Short);
            }
            _ => p.gemv_packed(w, x, y, product, several),
        },
        (Matrix::Packed(w), Input::Floats(x)) => p.gemv_packed_floats(w, x, y, product, several),
        // The inputs are chosen by the matrices, which are all of one kind.
        _ => debug_assert!(false, "a matrix with the inputs of another kind"),
    }
}

fn attend(p: &mut Recorder, width: Width, state: &State, cache: &KvCache) {
    let State { q, partials, .. } = state;
    match width {
        _ if !p.tuning().tiles || !cache.shape.fits_tiles() => {
            p.attention(q, cache, partials, matches!(width, Width::One | Width::Few));
        }
        Width::Short | Width::Chunk => p.attention_prefill(q, cache, partials),
        Width::One | Width::Few => p.attention_decode(q, cache, partials),
    }
}

/// One token through all layers, as [`layers`]. With a single token a card waits for dispatches
/// rather than for memory. So where a kernel can do several steps, it does: in a product, each
/// workgroup then norms the input by itself.
pub(super) fn decode(p: &mut Recorder, config: &Config, weights: &Weights, state: &State) -> Plan {
    if !p.tuning().fused {
        return layers(p, config, weights, state, Width::One);
    }
    if let (Some(stream), Some(matrices), Activations::Groups(h), Activations::Groups(ff_h)) =
        (&state.stream, weights.stream_matrices(), &state.h, &state.ff_h)
    {
        let buffers = StreamBuffers { stream, h, ff_h };
        stream_blocks(p, config, weights, &matrices, state, &buffers);
        return p.finish();
    }
    embed(p, config, weights, state, true);
    for (block, cache) in weights.blocks.iter().zip(&state.cache) {
        qkv(p, config, block, state, cache);
        attend(p, Width::One, state, cache);
        attn_output(p, config, block, state);
        feed_forward(p, config, block, state);
    }
    p.finish()
}

/// What [`stream_blocks`] passes from one product to the next.
struct StreamBuffers<'a> {
    stream: &'a Stream,
    h: &'a QuantizedGroups,
    ff_h: &'a QuantizedGroups,
}

/// The blocks, where [`Weights::stream_matrices`] has theirs. Whatever adds to the residual stream
/// also makes it the input of the products after the next norm. So no dispatch norms it.
fn stream_blocks(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    matrices: &[[&Packed; 4]],
    state: &State,
    buffers: &StreamBuffers<'_>,
) {
    let State { x, qkv, q, rope_table, partials, .. } = state;
    let StreamBuffers { stream, h, ff_h } = *buffers;
    let activation = config.architecture.activation;
    let mut next_norms = weights.blocks.iter().map(|block| &block.attn_norm);
    match (&weights.token_embd, next_norms.next()) {
        (Vocabulary::Packed(embd), Some(norm)) => {
            p.embed_stream(&state.tokens, embd, config.embedding_scale, norm, x, stream);
        }
        (_, norm) => {
            embed(p, config, weights, state, true);
            norm.into_iter().for_each(|norm| p.stream_of_last(x, norm, stream));
        }
    }
    let blocks = weights.blocks.iter().zip(&state.cache).zip(matrices);
    for ((block, cache), &[w_qkv, w_output, w_gate_up, w_down]) in blocks {
        let eps = block.attn_norm.eps;
        match &block.head_norms {
            // Attention writes its sums to the memory of `qkv`. So the products go to `q`, which has room
            // for the queries of many tokens.
            Some(norms) if cache.shape.norms_in_attention(p.gpu()) && q.len() >= w_qkv.rows => {
                let products = q.first(w_qkv.rows);
                p.norm_gemv_packed(w_qkv, stream, eps, &products);
                p.norm_attention_decode(&products, norms, rope_table, cache, partials);
            }
            Some(norms) if w_qkv.takes_heads(p.tuning(), config.head_dim) => {
                let heads = Heads { norms, rope_table, q, cache };
                p.norm_gemv_heads_packed(w_qkv, stream, eps, &heads);
                attend(p, Width::One, state, cache);
            }
            _ => {
                p.norm_gemv_packed(w_qkv, stream, eps, qkv);
                rotate(p, block, qkv, rope_table, q, cache, true);
                attend(p, Width::One, state, cache);
            }
        }
        if w_output.merges() {
            p.merge_stream_packed(w_output, partials, &block.ffn_norm, x, stream);
        } else {
            p.merge_quantize(partials, h);
            p.stream_packed(w_output, h, &block.ffn_norm, x, stream);
        }
        p.norm_gated_packed(w_gate_up, stream, block.ffn_norm.eps, activation, ff_h);
        let next_norm = next_norms.next().unwrap_or(&weights.output_norm);
        p.stream_packed(w_down, ff_h, next_norm, x, stream);
    }
}

/// Whether a product with `w` norms its input, or just quantises it.
fn norms(p: &Recorder, w: &Ternary) -> bool {
    w.k <= max_normed_columns(p.tuning(), p.gpu().subgroups)
}

/// From the residual stream to queries, and to keys and values in the cache.
fn qkv(p: &mut Recorder, config: &Config, block: &Block, state: &State, cache: &KvCache) {
    let State { x, h, qkv, q, rope_table, .. } = state;
    let norm = &block.attn_norm;
    match &block.attn_qkv {
        Matrix::Ternary(w)
            if block.head_norms.is_none()
                && w.k <= max_rope_columns(p.tuning(), p.gpu().subgroups)
                && w.ends_with_heads(config.head_dim)
                && cache.shape.kv != KvType::Int8 =>
        {
            return p.norm_gemv_rope_kv(w, x, norm, rope_table, q, cache);
        }
        Matrix::Ternary(w) if norms(p, w) => {
            p.norm_gemv(w, x, Some(norm), qkv, Product::Store);
        }
        w => {
            let input = normed(p, x, norm, h);
            multiply(p, Width::One, w, &input, qkv, Product::Store);
        }
    }
    rotate(p, block, qkv, rope_table, q, cache, true);
}

/// From the splits of attention to the residual stream.
fn attn_output(p: &mut Recorder, config: &Config, block: &Block, state: &State) {
    let State { x, partials, .. } = state;
    match &block.attn_output {
        Matrix::Ternary(w) if norms(p, w) => {
            p.merge_norm_gemv(w, partials, block.attn_sub_norm.as_ref(), x);
        }
        w => {
            let input = merged(p, config, block, state);
            multiply(p, Width::One, w, &input, x, Product::Add);
        }
    }
}

fn feed_forward(p: &mut Recorder, config: &Config, block: &Block, state: &State) {
    let State { x, h, ff, .. } = state;
    let product = Product::Gated(config.architecture.activation);
    match &block.ffn_gate_up {
        Matrix::Ternary(w) if norms(p, w) => {
            p.norm_gemv(w, x, Some(&block.ffn_norm), ff, product);
        }
        w => {
            let input = normed(p, x, &block.ffn_norm, h);
            multiply(p, Width::One, w, &input, ff, product);
        }
    }
    let norm = block.ffn_sub_norm.as_ref();
    match &block.ffn_down {
        Matrix::Ternary(w) if norms(p, w) => {
            p.norm_gemv(w, ff, norm, x, Product::Add);
        }
        w => {
            let input = gated(p, config, norm, state);
            multiply(p, Width::One, w, &input, x, Product::Add);
        }
    }
}
