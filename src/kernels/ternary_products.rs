//! The products of one token with ternary matrices: the rows of [`products`](super::products) with that
//! format.

use super::adapter_add::Added;
use super::attention::{KvCache, Partials};
use super::product_consts as consts;
use super::products::{
    MERGE_NORM_GEMV, MERGE_NORM_GEMV_ADAPTED, NORM_GEMV, NORM_GEMV_ADAPTED, NORM_GEMV_ROPE_KV,
};
use super::rows::{Instead, TernaryProduct, weight_or};
use super::splits::{FEW_SPLITS, MAX_SPLITS};
use super::weight::{Norm, Product, Ternary};
use crate::gpu::{Bound, Buffer, Const, Extent, Kernel, Recorder};

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
        self.normed_row(w, x, norm, None, y, product);
    }

    /// As [`Recorder::norm_gemv`], with what pairs add to the products.
    pub fn norm_gemv_adapted(
        &mut self,
        w: &Ternary,
        x: &Buffer<f32>,
        norm: Option<&Norm>,
        added: Added<'_>,
        y: &Buffer<f32>,
        product: Product,
    ) {
        self.normed_row(w, x, norm, Some(added), y, product);
    }

    fn normed_row(
        &mut self,
        w: &Ternary,
        x: &Buffer<f32>,
        norm: Option<&Norm>,
        added: Option<Added<'_>>,
        y: &Buffer<f32>,
        product: Product,
    ) {
        let groups = consts::groups_of_rows(self.tuning(), w.k, product);
        let weight = weight_or(norm, x);
        let consts =
            consts::row(groups.normed_consts(self.gpu(), w.k, 0), norm.map(|norm| norm.eps));
        let [input, output]: [&[&dyn Bound]; 2] = [&[x, &weight], &[y]];
        let (kernel, consts, added) = adapted([&NORM_GEMV, &NORM_GEMV_ADAPTED], consts, added);
        TernaryProduct {
            kernel,
            w,
            product,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts,
            instead: Vec::new(),
            buffers: &[input, added.as_slice(), output].concat(),
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
        self.merged_row(w, partials, norm, None, y);
    }

    /// As [`Recorder::merge_norm_gemv`], with what pairs add to the products.
    pub fn merge_norm_gemv_adapted(
        &mut self,
        w: &Ternary,
        partials: &Partials,
        norm: Option<&Norm>,
        added: Added<'_>,
        y: &Buffer<f32>,
    ) {
        self.merged_row(w, partials, norm, Some(added), y);
    }

    fn merged_row(
        &mut self,
        w: &Ternary,
        partials: &Partials,
        norm: Option<&Norm>,
        added: Option<Added<'_>>,
        y: &Buffer<f32>,
    ) {
        let Partials { shape, sums, max_total } = partials;
        let groups = consts::groups_of_merged(self.tuning(), w.k);
        let weight = weight_or(norm, sums);
        let kernels = [&MERGE_NORM_GEMV, &MERGE_NORM_GEMV_ADAPTED];
        let of_splits = |splits| {
            let groups = groups.normed_consts(self.gpu(), w.k, 0);
            let own = consts::merged_row(shape, groups, norm.map(|norm| norm.eps), splits);
            adapted(kernels, own, added)
        };
        let few =
            FEW_SPLITS.map(|(splits, is_taken)| Instead { is_taken, consts: of_splits(splits).1 });
        let (kernel, consts, added) = of_splits(MAX_SPLITS);
        let [input, output]: [&[&dyn Bound]; 2] = [&[sums, max_total, &weight], &[y]];
        TernaryProduct {
            kernel,
            w,
            product: Product::Add,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts,
            instead: few.into(),
            buffers: &[input, added.as_slice(), output].concat(),
        }
        .record(self);
    }
}

/// The second of `kernels` if pairs add something, or else the first; its constants; and the buffers that it
/// binds before its result.
fn adapted<'a>(
    [plain, adapted]: [&'static Kernel; 2],
    consts: Vec<Const>,
    added: Option<Added<'a>>,
) -> (&'static Kernel, Vec<Const>, Vec<&'a dyn Bound>) {
    match added {
        None => (plain, consts, Vec::new()),
        Some(Added { wide, u }) => {
            (adapted, [consts, wide.consts()].concat(), vec![&wide.b as &dyn Bound, u])
        }
    }
}
