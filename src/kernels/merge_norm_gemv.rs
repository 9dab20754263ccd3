use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::{AttentionShape, Norm, Partials, Product, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// See `norm_gemv`.
const ROW_GROUPS: RowGroups = RowGroups { workgroup: WORKGROUP, lanes: 16, each: 2 };

pub(super) const KERNEL: Kernel = Kernel {
    name: "merge_norm_gemv",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/step",
        "shared/dot4", "shared/gated", "shared/ternary",
        "shared/quantize",
        "shared/merged",
        "shared/merged_input",
        "shared/normed_input",
        "shared/normed_rows",
        "merge_norm_gemv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 2560, shard: 0..2560 };
        let consts = consts(&AttentionShape::EXAMPLE, 1e-5);
        [ternary_consts(&rows, Product::Add, true), consts].concat()
    },
};

fn consts(shape: &AttentionShape, eps: f32) -> Vec<Const> {
    [shape.consts(), ROW_GROUPS.consts(), vec![Const::F32("EPS", eps)]].concat()
}

impl Recorder<'_> {
    /// `y` `[rows]` += the product of `w` with one token's output of attention: merged from
    /// `partials`, normed and quantised.
    pub fn merge_norm_gemv(
        &mut self,
        w: &Ternary,
        partials: &Partials,
        norm: &Norm,
        y: &Buffer<f32>,
    ) {
        let Partials { shape, sums, max_total } = partials;
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product: Product::Add,
            rows_per_workgroup: ROW_GROUPS.rows(),
            tokens: Extent::Fixed(1),
            consts: consts(shape, norm.eps),
            buffers: &[sums, max_total, &norm.weight, y],
        }
        .record(self);
    }
}
