//! A block of the model as its four products, and attention between the first and the second.

use super::adapters::{Delta, Deltas};
use super::state::{Activations, Apart, State};
use super::weights::{Block, Matrix, Weights};
use crate::compute::Site;
use crate::gpu::{Buffer, Recorder};
use crate::kernels::{
    Added, Batch, Heads, KvCache, KvType, Norm, Packed, Product, Quantized, QuantizedGroups,
    Stream, Ternary, max_normed_columns, max_rope_columns,
};
use crate::model::{Activation, Config};

/// The most tokens for which [`Width::Short`] is faster than [`Width::Chunk`]. It is the number of
/// tokens of a tile.
pub(super) const SHORT: usize = 32;

/// How many tokens a plan is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Width {
    /// One token.
    One,
    /// Up to [`FEW`](crate::kernels::FEW): a draft pass.
    Few,
    /// Up to [`SHORT`]: a chunk of a short prompt.
    Short,
    /// A chunk of a prompt.
    Chunk,
}

impl Width {
    /// Whether the step has a row for each of its tokens.
    pub(super) fn has_rows(self) -> bool {
        matches!(self, Self::One | Self::Few)
    }
}

/// The values that a product takes.
enum From<'a> {
    /// The norm of the residual stream.
    Stream(&'a Norm),
    /// The outputs of attention, normed if there is a norm.
    Attention(Option<&'a Norm>),
    /// The gated activation, normed if there is a norm.
    Gate(Option<&'a Norm>),
}

/// The destination of a product's result.
enum To<'a> {
    /// Queries, and keys and values in the cache. They are normed if there are norms.
    Heads(Option<&'a Norm>),
    /// The residual stream. If this plan also takes the norm of the stream next, the product may
    /// make the norm's result too.
    Stream(Option<&'a Norm>),
    /// The gated activation.
    Gate(Activation),
}

/// One row of a block's table.
struct Row<'a> {
    site: Site,
    from: From<'a>,
    /// If the matrices of a stack do not share their input: the rows of each, and the norm that makes its
    /// input of the one above.
    each: Vec<(usize, &'a Norm)>,
    matrix: &'a Matrix,
    to: To<'a>,
}

/// How a product is computed.
enum Way<'a> {
    /// Each has a kernel of its own: the product's input, the product, and the use of its result.
    Apart,
    /// One kernel makes the input and multiplies. With a single token a card waits for dispatches
    /// rather than for memory, so each workgroup norms the input by itself.
    Normed(&'a Ternary),
    /// The kernel that added to the residual stream has also made the input, so no dispatch norms
    /// it.
    Streamed(&'a Packed, Streamed<'a>),
}

/// The buffers of [`Way::Streamed`].
#[derive(Clone, Copy)]
pub(super) struct Streamed<'a> {
    pub(super) stream: &'a Stream,
    h: &'a QuantizedGroups,
    ff_h: &'a QuantizedGroups,
}

/// The input of a matrix, in the form that the matrix takes.
enum Input<'a> {
    Rows(&'a Quantized),
    Groups(&'a QuantizedGroups),
    Floats(&'a Buffer<f32>),
}

/// The blocks of a model, for steps of one width.
pub(super) struct Blocks<'a> {
    pub(super) config: &'a Config,
    pub(super) weights: &'a Weights,
    pub(super) state: &'a State,
    width: Width,
    /// Whether products of one token make their own input.
    fused: bool,
    /// The buffers in which the residual stream is passed on as the next product's input, if it is.
    pub(super) streamed: Option<Streamed<'a>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        p: &Recorder,
        config: &'a Config,
        weights: &'a Weights,
        state: &'a State,
        width: Width,
    ) -> Self {
        let fused = width == Width::One && p.tuning().fused;
        let streamed = match (&state.stream, &state.h, &state.ff_h) {
            (Some(stream), Activations::Groups(h), Activations::Groups(ff_h))
                if fused && state.deltas.is_none() =>
            {
                Some(Streamed { stream, h, ff_h })
            }
            _ => None,
        };
        Self { config, weights, state, width, fused, streamed }
    }

    /// The same blocks, but the result of every product is stored in a buffer of its own.
    pub(super) fn apart(self) -> Self {
        Self { fused: false, streamed: None, ..self }
    }

    pub(super) fn has_rows(&self) -> bool {
        self.width.has_rows()
    }

    /// The tokens that the kernels of adapters compute.
    pub(super) fn batch(&self) -> Batch {
        if self.has_rows() { Batch::Few } else { Batch::Many }
    }

    /// Records block `n` up to the product of `last`, which is included. The residual stream is in
    /// `x` before and after it. `next` is the norm that takes the stream after the block, if it is
    /// in the same plan.
    pub(super) fn block(&self, p: &mut Recorder, n: usize, last: Site, next: Option<&Norm>) {
        let (block, cache) = (&self.weights.blocks[n], &self.state.cache.blocks[n]);
        for row in self.table(block, next) {
            let deltas = self.state.deltas.as_ref();
            let adapted = deltas.and_then(|deltas| Some((deltas, deltas.at(n, row.site)?)));
            match (&row.from, row.each.is_empty(), adapted) {
                (_, _, Some((deltas, delta))) => {
                    self.product_adapted(p, &row, deltas, delta, cache);
                }
                (From::Stream(norm), false, None) => self.products(p, &row, norm, cache),
                _ => self.product(p, &row, cache),
            }
            if row.site == last {
                break;
            }
            if row.site == Site::Qkv {
                self.attend(p, block, cache);
            }
        }
    }

    /// The table of a block's products.
    fn table<'b>(&self, block: &'b Block, next: Option<&'b Norm>) -> [Row<'b>; 4] {
        let activation = self.config.architecture.activation;
        let (n_q, n_kv) = (self.config.n_embd_q(), self.config.n_embd_kv());
        let each = |norms: &'b [Norm], rows: &[usize]| rows.iter().copied().zip(norms).collect();
        [
            Row {
                site: Site::Qkv,
                from: From::Stream(&block.attn_norm),
                each: each(&block.attn_norms_in, &[n_q, n_kv, n_kv]),
                matrix: &block.attn_qkv,
                to: To::Heads(block.head_norms.as_ref()),
            },
            Row {
                site: Site::Output,
                from: From::Attention(block.attn_sub_norm.as_ref()),
                each: Vec::new(),
                matrix: &block.attn_output,
                to: To::Stream(Some(&block.ffn_norm)),
            },
            Row {
                site: Site::GateUp,
                from: From::Stream(&block.ffn_norm),
                each: each(&block.ffn_norms_in, &[self.config.n_ff; 2]),
                matrix: &block.ffn_gate_up,
                to: To::Gate(activation),
            },
            Row {
                site: Site::Down,
                from: From::Gate(block.ffn_sub_norm.as_ref()),
                each: Vec::new(),
                matrix: &block.ffn_down,
                to: To::Stream(next),
            },
        ]
    }

    fn way<'b>(&'b self, p: &Recorder, matrix: &'b Matrix) -> Way<'b> {
        match (matrix, self.streamed) {
            (Matrix::Packed(w), Some(streamed)) => Way::Streamed(w, streamed),
            (Matrix::Ternary(w), _)
                if self.fused && w.k <= max_normed_columns(p.tuning(), p.gpu().subgroups) =>
            {
                Way::Normed(w)
            }
            _ => Way::Apart,
        }
    }

    fn product(&self, p: &mut Recorder, row: &Row<'_>, cache: &KvCache) {
        match self.way(p, row.matrix) {
            Way::Apart => self.product_apart(p, row, cache),
            Way::Normed(w) => self.product_normed(p, row, w, None, cache),
            Way::Streamed(w, streamed) => self.product_streamed(p, row, w, streamed, cache),
        }
    }

    fn product_apart(&self, p: &mut Recorder, row: &Row<'_>, cache: &KvCache) {
        let input = self.input(p, &row.from);
        let (y, product) = self.result(&row.to);
        multiply(p, self.width, row.matrix, &input, y, product);
        self.rotate(p, &row.to, cache);
    }

    /// A product with what the pairs of adapters add to it. They take its input before it is rounded.
    fn product_adapted(
        &self,
        p: &mut Recorder,
        row: &Row<'_>,
        deltas: &Deltas,
        delta: &Delta,
        cache: &KvCache,
    ) {
        let State { x, q, partials, ff, .. } = self.state;
        let Deltas { thin: u, apart, .. } = deltas;
        let batch = self.batch();
        match &row.from {
            From::Stream(norm) => p.adapter_thin(&delta.thin, x, Some(norm), u, batch),
            From::Gate(norm) => p.adapter_thin(&delta.thin, ff, *norm, u, batch),
            From::Attention(norm) if batch == Batch::Many => {
                // The queries are not needed any more.
                p.merge_splits(partials, q);
                p.adapter_thin(&delta.thin, q, *norm, u, batch);
            }
            From::Attention(norm) => p.adapter_thin_merged(&delta.thin, partials, *norm, u),
        }
        let added = Added { wide: &delta.wide, u };
        if let Way::Normed(w) = self.way(p, row.matrix) {
            return self.product_normed(p, row, w, Some(added), cache);
        }
        let input = self.input(p, &row.from);
        let (y, product) = self.result(&row.to);
        match row.to {
            To::Gate(_) => {
                let both = row.matrix.one_below_the_other();
                multiply(p, self.width, &both, &input, apart, Product::Store);
            }
            _ => multiply(p, self.width, row.matrix, &input, apart, Product::Store),
        }
        p.adapter_add(added, apart, y, product, batch);
        self.rotate(p, &row.to, cache);
    }

    /// The products of matrices that do not share their input, which is made of the norm of the stream.
    fn products(&self, p: &mut Recorder, row: &Row<'_>, norm: &Norm, cache: &KvCache) {
        let State { x, h, ff, apart, .. } = self.state;
        let Some(Apart { normed: stream, gate_up }) = apart else {
            return debug_assert!(false, "no memory for products apart");
        };
        p.rms_norm_of_all(x, norm, stream);
        let y = match row.to {
            To::Gate(_) => gate_up,
            _ => self.result(&row.to).0,
        };
        let mut first = 0;
        for &(rows, norm) in &row.each {
            let input = normed(p, stream, norm, h);
            let matrix = row.matrix.part(&(first..first + rows));
            multiply(p, self.width, &matrix, &input, y, Product::Store);
            first += rows;
        }
        match row.to {
            To::Gate(activation) => p.gate_rows(activation, self.config.n_ff, gate_up, ff),
            _ => self.rotate(p, &row.to, cache),
        }
    }

    fn product_normed(
        &self,
        p: &mut Recorder,
        row: &Row<'_>,
        w: &Ternary,
        added: Option<Added<'_>>,
        cache: &KvCache,
    ) {
        let State { x, q, ff, partials, rope_table, .. } = self.state;
        let (y, product) = self.result(&row.to);
        let (input, norm) = match (&row.from, &row.to) {
            // With what pairs add, it would bind more than eight buffers.
            (From::Stream(norm), To::Heads(None))
                if added.is_none()
                    && w.k <= max_rope_columns(p.tuning(), p.gpu().subgroups)
                    && w.ends_with_heads(self.config.head_dim)
                    && cache.shape.kv != KvType::Int8 =>
            {
                return p.norm_gemv_rope_kv(w, x, norm, rope_table, q, cache);
            }
            (From::Attention(norm), _) => {
                return match added {
                    None => p.merge_norm_gemv(w, partials, *norm, y),
                    Some(added) => p.merge_norm_gemv_adapted(w, partials, *norm, added, y),
                };
            }
            (From::Stream(norm), _) => (x, Some(*norm)),
            (From::Gate(norm), _) => (ff, *norm),
        };
        match added {
            None => p.norm_gemv(w, input, norm, y, product),
            Some(added) => p.norm_gemv_adapted(w, input, norm, added, y, product),
        }
        self.rotate(p, &row.to, cache);
    }

    fn product_streamed(
        &self,
        p: &mut Recorder,
        row: &Row<'_>,
        w: &Packed,
        Streamed { stream, h, ff_h }: Streamed<'_>,
        cache: &KvCache,
    ) {
        let State { x, qkv, q, rope_table, partials, .. } = self.state;
        match (&row.from, &row.to) {
            // Attention writes its sums to the memory of `qkv`, so the products go to `q`.
            (From::Stream(norm), To::Heads(Some(_))) if self.norms_in_attention(p, w, cache) => {
                p.norm_gemv_packed(w, stream, norm.eps, &q.first(w.rows));
            }
            (From::Stream(norm), To::Heads(Some(norms)))
                if w.takes_heads(p.tuning(), self.config.head_dim) =>
            {
                let heads = Heads { norms, rope_table, q, cache };
                p.norm_gemv_heads_packed(w, stream, norm.eps, &heads);
            }
            (From::Stream(norm), To::Heads(_)) => {
                p.norm_gemv_packed(w, stream, norm.eps, qkv);
                self.rotate(p, &row.to, cache);
            }
            (From::Stream(norm), To::Gate(activation)) => {
                p.norm_gated_packed(w, stream, norm.eps, *activation, ff_h);
            }
            (From::Attention(_), To::Stream(Some(next))) if w.merges() => {
                p.merge_stream_packed(w, partials, next, x, stream);
            }
            (From::Attention(_), To::Stream(Some(next))) => {
                p.merge_quantize(partials, h);
                p.stream_packed(w, h, next, x, stream);
            }
            (From::Gate(_), To::Stream(Some(next))) => p.stream_packed(w, ff_h, next, x, stream),
            // The next plan begins by making its own input: see `forward.rs`.
            (From::Gate(_), To::Stream(None)) => p.gemv_packed(w, ff_h, x, Product::Add, false),
            _ => debug_assert!(false, "{:?} has no such product", row.site),
        }
    }

    /// Whether attention norms and rotates the heads itself. It then takes the products from `q`,
    /// which has room for the queries of many tokens.
    fn norms_in_attention(&self, p: &Recorder, w: &Packed, cache: &KvCache) -> bool {
        cache.shape.norms_in_attention(p.gpu()) && self.state.q.len() >= w.rows
    }

    fn attend(&self, p: &mut Recorder, block: &Block, cache: &KvCache) {
        let State { q, partials, rope_table, .. } = self.state;
        if let (Some(norms), Way::Streamed(w, _)) =
            (&block.head_norms, self.way(p, &block.attn_qkv))
            && self.norms_in_attention(p, w, cache)
        {
            return p.norm_attention_decode(&q.first(w.rows), norms, rope_table, cache, partials);
        }
        if !p.tuning().tiles || !cache.shape.fits_tiles() {
            p.attention(q, cache, partials, self.has_rows());
        } else if self.has_rows() {
            p.attention_decode(q, cache, partials);
        } else {
            p.attention_prefill(q, cache, partials);
        }
    }

    /// Makes the input of a matrix, in the buffers for it.
    fn input(&self, p: &mut Recorder, from: &From<'_>) -> Input<'a> {
        let State { x, h, q, partials, ff, ff_h, .. } = self.state;
        match (from, h) {
            (From::Stream(norm), _) => normed(p, x, norm, h),
            (From::Gate(Some(norm)), _) => normed(p, ff, norm, ff_h),
            (From::Gate(None), _) => quantized(p, ff, self.config.n_ff, ff_h),
            (From::Attention(norm), Activations::Rows(h)) => {
                p.attention_merge(partials, *norm, h);
                Input::Rows(h)
            }
            (From::Attention(None), Activations::Groups(h)) => {
                p.merge_quantize(partials, h);
                Input::Groups(h)
            }
            (From::Attention(norm), h) => {
                // The queries are not needed any more.
                p.merge_splits(partials, q);
                match norm {
                    Some(norm) => normed(p, q, norm, h),
                    None => quantized(p, q, self.config.n_embd_q(), h),
                }
            }
        }
    }

    /// The buffer that a product writes, and how it writes.
    fn result(&self, to: &To<'_>) -> (&'a Buffer<f32>, Product) {
        match *to {
            To::Heads(_) => (&self.state.qkv, Product::Store),
            To::Stream(_) => (&self.state.x, Product::Add),
            To::Gate(activation) => (&self.state.ff, Product::Gated(activation)),
        }
    }

    /// If a product has stored queries, keys and values, passes them on.
    fn rotate(&self, p: &mut Recorder, to: &To<'_>, cache: &KvCache) {
        let State { qkv, q, rope_table, .. } = self.state;
        match to {
            To::Heads(None) => p.rope_kv(qkv, rope_table, q, cache, self.has_rows()),
            To::Heads(Some(norms)) => {
                p.norm_rope_kv(qkv, norms, rope_table, q, cache, self.has_rows());
            }
            To::Stream(_) | To::Gate(_) => {}
        }
    }
}

/// Norms every token of `x`, as the input of a matrix.
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

/// Makes every token of `x` `[n_tokens, k]` the input of a matrix.
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

/// For one token, records a matrix-vector product; for several, a matrix product that reads each
/// weight once.
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
            // This kernel reads the weights once for every few tokens. A kernel with tiles would
            // have too few workgroups for a small matrix to fill a card.
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
        // The kind of the inputs is chosen by the matrices, which are all of one kind.
        _ => debug_assert!(false, "a matrix with the inputs of another kind"),
    }
}
