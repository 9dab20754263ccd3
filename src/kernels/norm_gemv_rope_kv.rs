use super::attention::{AttentionShape, KvCache};
use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::weight::{Norm, Product, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder, Tuning};
use crate::lanes_variants;

/// A slot computes the two values of a RoPE pair. See `norm_gemv` for the rest.
fn row_groups(tuning: &Tuning, k: usize) -> RowGroups {
    // With 32 lanes, rows of 4096 values are 1 % of a decode step faster, and rows of 2560 are slower.
    RowGroups::normed(tuning, k, if k >= 4096 { 32 } else { 16 }, 2)
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_rope_kv",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("rope_table", Access::Read),
        ("queries", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/step", "shared/rope_kv", "shared/kv_row",
        "shared/dot4", "shared/gated", "shared/ternary", "shared/ternary_product",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv_rope_kv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 3840, shard: 0..3840 };
        let groups = row_groups(&Tuning::card(None, 256), rows.k);
        let consts = consts(&AttentionShape::EXAMPLE, groups.normed_consts_if(false), 1e-5);
        [ternary_consts(&rows, Product::Store, true), consts].concat()
    },
};

fn consts(shape: &AttentionShape, groups: Vec<Const>, eps: f32) -> Vec<Const> {
    [shape.consts(), groups, vec![Const::F32("EPS", eps)]].concat()
}

impl Recorder<'_> {
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
        let groups = row_groups(self.tuning(), w.k);
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product: Product::Store,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts: consts(
                &cache.shape,
                groups.normed_consts(self.gpu(), w.k, groups.results()),
                norm.eps,
            ),
            instead: Vec::new(),
            buffers: &[x, &norm.weight, rope_table, q, &cache.keys, &cache.values],
        }
        .record(self);
    }
}
