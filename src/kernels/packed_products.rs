//! The products of one token with packed matrices, whose codes have 1 or 2 bits: the rows of
//! [`products`](super::products) with that format. The device has at least
//! [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row. There is a dispatch for each shard.

use super::attention::{KvCache, Partials};
use super::packed::{Packed, PackedShard, QuantizedGroups, Stream};
use super::product_consts as consts;
use super::products::{
    MERGE_STREAM_PACKED, NORM_GATED_PACKED, NORM_GEMV_HEADS_PACKED, NORM_GEMV_PACKED, STREAM_PACKED,
};
use super::rows::ShardRows;
use super::splits::{FEW_SPLITS, MAX_SPLITS};
use super::weight::{Norm, Product};
use super::workgroups::in_a_row;
use crate::gpu::{Buffer, Recorder};
use crate::model::Activation;

/// Where the heads of a token go, and by which norms and angles.
pub struct Heads<'a> {
    /// As in [`Recorder::norm_rope_kv`].
    pub norms: &'a Norm,
    /// As in [`Recorder::rope_kv`].
    pub rope_table: &'a Buffer<[f32; 2]>,
    /// `[n_head * head_dim]`.
    pub q: &'a Buffer<f32>,
    /// The step's position is written.
    pub cache: &'a KvCache,
}

impl Recorder<'_> {
    /// `y` `[rows]` = the product of `w`, whose codes have 1 or 2 bits, with the norm of the residual
    /// stream `x`. `eps` is the norm's. The device has at least [`MIN_LANES`](super::packed::MIN_LANES) lanes
    /// for a row.
    pub fn norm_gemv_packed(&mut self, w: &Packed, x: &Stream, eps: f32, y: &Buffer<f32>) {
        for (rows, shard) in shards(w) {
            self.dispatch(
                &NORM_GEMV_PACKED,
                &consts::norm(&rows, w, Product::Store, self.tuning(), eps),
                &[&shard.codes, &shard.scales, &x.words, y],
                in_a_row(rows.shard.len().div_ceil(32)),
            );
        }
    }

    /// `y` `[rows]` = the int8 quantisation of `activation(gate) * up`, with a scale for each 32
    /// values. gate and up are the products of `w`, whose codes have 1 or 2 bits, with the norm of the
    /// residual stream `x`. `eps` is the norm's. The rows of each shard are a multiple of 32, and
    /// the device has at least [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn norm_gated_packed(
        &mut self,
        w: &Packed,
        x: &Stream,
        eps: f32,
        activation: Activation,
        y: &QuantizedGroups,
    ) {
        let product = Product::Gated(activation);
        for (rows, shard) in shards(w) {
            self.dispatch(
                &NORM_GATED_PACKED,
                &consts::norm(&rows, w, product, self.tuning(), eps),
                &[&shard.codes, &shard.scales, &x.words, &y.q, &y.scale],
                in_a_row(rows.shard.len() / 32),
            );
        }
    }

    /// The product of `w`, whose codes have 1 or 2 bits, with the norm of the residual stream `x`, as
    /// [`Recorder::norm_gemv_packed`], and then what [`Recorder::norm_rope_kv`] does. `eps` is the
    /// norm's of `x`. [`Packed::takes_heads`] says whether it takes `w`.
    pub fn norm_gemv_heads_packed(&mut self, w: &Packed, x: &Stream, eps: f32, to: &Heads<'_>) {
        let KvCache { shape, keys, values } = to.cache;
        // Both norms have the model's epsilon.
        debug_assert!(eps == to.norms.eps);
        for (rows, shard) in shards(w) {
            self.dispatch(
                &NORM_GEMV_HEADS_PACKED,
                &consts::norm_heads(&rows, w, self.tuning(), shape, eps),
                &[
                    &shard.codes,
                    &shard.scales,
                    &x.words,
                    &to.norms.weight,
                    to.rope_table,
                    to.q,
                    keys,
                    values,
                ],
                in_a_row(rows.shard.len() / shape.head_dim),
            );
        }
    }

    /// Adds the product of `w`, whose codes have 1 or 2 bits, with one token's `q` to the residual stream
    /// `x` `[rows]`. `stream` is then `x` as the input of `norm`, the norm that comes next. The rows
    /// of each shard are a multiple of 32, and the device has at least
    /// [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn stream_packed(
        &mut self,
        w: &Packed,
        q: &QuantizedGroups,
        norm: &Norm,
        x: &Buffer<f32>,
        stream: &Stream,
    ) {
        for (rows, shard) in shards(w) {
            self.dispatch(
                &STREAM_PACKED,
                &consts::given(&rows, w, self.tuning()),
                &[&shard.codes, &shard.scales, &q.q, &q.scale, &norm.weight, x, &stream.words],
                in_a_row(rows.shard.len() / 32),
            );
        }
    }

    /// As [`Recorder::stream_packed`], with the outputs of attention, merged from `partials` and
    /// quantised. [`Packed::merges`] says whether it takes `w`.
    pub fn merge_stream_packed(
        &mut self,
        w: &Packed,
        partials: &Partials,
        norm: &Norm,
        x: &Buffer<f32>,
        stream: &Stream,
    ) {
        let Partials { shape, sums, max_total } = partials;
        for (rows, shard) in shards(w) {
            let tuning = self.tuning();
            let consts = |splits| consts::merge(&rows, w, tuning, shape, splits);
            let groups = in_a_row(rows.shard.len() / 32);
            self.dispatch(
                &MERGE_STREAM_PACKED,
                &consts(MAX_SPLITS),
                &[&shard.codes, &shard.scales, sums, max_total, &norm.weight, x, &stream.words],
                groups,
            );
            for (splits, is_taken) in FEW_SPLITS {
                self.instead(is_taken, &MERGE_STREAM_PACKED, &consts(splits), groups);
            }
        }
    }
}

/// The shards of `w`, each with its rows.
fn shards(w: &Packed) -> impl Iterator<Item = (ShardRows, &PackedShard)> {
    let rows = |shard: &PackedShard| ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
    w.shards.iter().map(move |shard| (rows(shard), shard))
}
