use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::{AttentionShape, KvCache, Norm, Product, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// A slot computes the two values of a RoPE pair. See `norm_gemv` for the rest.
const ROW_GROUPS: RowGroups = RowGroups { workgroup: WORKGROUP, lanes: 16, each: 2 };

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
        "shared/dot4", "shared/gated", "shared/ternary",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv_rope_kv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 3840, shard: 0..3840 };
        let consts = consts(&AttentionShape::EXAMPLE, 1e-5);
        [ternary_consts(&rows, Product::Store, true), consts].concat()
    },
};

fn consts(shape: &AttentionShape, eps: f32) -> Vec<Const> {
    [shape.consts(), ROW_GROUPS.consts(), vec![Const::F32("EPS", eps)]].concat()
}

impl Recorder<'_> {
    /// q, k and v of one token: `w` times the norm of `x` `[k]`, quantised. q and k are rotated by
    /// position, as in [`Recorder::rope_kv`]. q, divided by `sqrt(head_dim)`, goes to `q`; k and v
    /// go to `cache`.
    ///
    /// The shards of `w` end where heads do. The cache is f16 or f32: a workgroup computes a part of
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
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product: Product::Store,
            rows_per_workgroup: ROW_GROUPS.rows(),
            tokens: Extent::Fixed(1),
            consts: consts(&cache.shape, norm.eps),
            buffers: &[x, &norm.weight, rope_table, q, &cache.keys, &cache.values],
        }
        .record(self);
    }
}
