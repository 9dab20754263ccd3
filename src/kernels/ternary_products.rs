//! The products of one token with ternary matrices: the rows of [`products`](super::products) with that
//! format.

use super::attention::{KvCache, Partials};
use super::product_consts as consts;
use super::products::{MERGE_NORM_GEMV, NORM_GEMV, NORM_GEMV_ROPE_KV};
use super::rows::{Instead, TernaryProduct, weight_or};
use super::splits::{FEW_SPLITS, MAX_SPLITS};
use super::weight::{Norm, Product, Ternary};
use crate::gpu::{Buffer, Extent, Recorder};

impl Recorder<'_> {
    /// The product of `w` with one token's `x` `[k]`, which is normed if there is a `norm`, and
    /// quantised. `y` is `[rows]`. [`max_normed_columns`](super::rows::max_normed_columns) says how long
    /// the rows of `w` may be.
    pub fn norm_gemv(
        &mut self,
        w: &Ternary,
        x: &Buffer<f32>,
        norm: Option<&Norm>,
        y: &Buffer<f32>,
        product: Product,
    ) {
        let groups = consts::groups_of_rows(self.tuning(), w.k, product);
        let weight = weight_or(norm, x);
        TernaryProduct {
            kernel: &NORM_GEMV,
            w,
            product,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts: consts::row(
                groups.normed_consts(self.gpu(), w.k, 0),
                norm.map(|norm| norm.eps),
            ),
            instead: Vec::new(),
            buffers: &[x, &weight, y],
        }
        .record(self);
    }

    /// q, k and v of one token: `w` times the norm of `x` `[k]`, quantised. q and k are rotated by
    /// position, as in [`Recorder::rope_kv`]. q, divided by `sqrt(head_dim)`, goes to `q`; k and v
    /// go to `cache`.
    ///
    /// [`max_rope_columns`](super::rows::max_rope_columns) says how long the rows of `w` may be. The
    /// shards of `w` end where heads do. The cache is f16 or f32: a workgroup computes a part of
    /// a head, and the scale of an int8 head needs all of it.
    pub fn norm_gemv_rope_kv(
        &mut self,
        w: &Ternary,
        x: &Buffer<f32>,
        norm: &Norm,
        rope_table: &Buffer<[f32; 2]>,
        q: &Buffer<f32>,
        cache: &KvCache,
    ) {
        let groups = consts::groups_of_pairs(self.tuning(), w.k);
        TernaryProduct {
            kernel: &NORM_GEMV_ROPE_KV,
            w,
            product: Product::Store,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts: consts::row_pairs(
                &cache.shape,
                groups.normed_consts(self.gpu(), w.k, groups.results()),
                norm.eps,
            ),
            instead: Vec::new(),
            buffers: &[x, &norm.weight, rope_table, q, &cache.keys, &cache.values],
        }
        .record(self);
    }

    /// `y` `[rows]` += the product of `w` with one token's output of attention: merged from
    /// `partials`, normed if there is a `norm`, and quantised.
    /// [`max_normed_columns`](super::rows::max_normed_columns) says how long the rows of `w` may be.
    pub fn merge_norm_gemv(
        &mut self,
        w: &Ternary,
        partials: &Partials,
        norm: Option<&Norm>,
        y: &Buffer<f32>,
    ) {
        let Partials { shape, sums, max_total } = partials;
        let groups = consts::groups_of_merged(self.tuning(), w.k);
        let weight = weight_or(norm, sums);
        let consts = |splits| {
            let groups = groups.normed_consts(self.gpu(), w.k, 0);
            consts::merged_row(shape, groups, norm.map(|norm| norm.eps), splits)
        };
        let few = FEW_SPLITS.map(|(splits, is_taken)| Instead { is_taken, consts: consts(splits) });
        TernaryProduct {
            kernel: &MERGE_NORM_GEMV,
            w,
            product: Product::Add,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts: consts(MAX_SPLITS),
            instead: few.into(),
            buffers: &[sums, max_total, &weight, y],
        }
        .record(self);
    }
}
