use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::weight::{Product, Quantized, Ternary};
use super::workgroups::FEW;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// Fewer threads than in other kernels. Each thread computes four rows, so small matrices have few
/// workgroups, hardly as many as a card takes at once.
const fn row_groups(lanes: u32) -> RowGroups {
    // Each lane stores the sum of one token.
    let few = FEW as u32;
    RowGroups { workgroup: 128, lanes: if lanes > few { lanes } else { few }, each: 4 }
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_few",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/step", "shared/dot4", "shared/gated", "shared/ternary", "shared/ternary_product", "gemm_few"),
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        [ternary_consts(&rows, Product::EXAMPLE, true), consts(row_groups(32))].concat()
    },
};

fn consts(groups: RowGroups) -> Vec<Const> {
    [groups.consts(), vec![Const::size("FEW", FEW)]].concat()
}

impl Recorder<'_> {
    /// The product of `w` with every token of `x`, [`FEW`] at a time. `y` is `[n_tokens, rows]`.
    pub fn gemm_few(&mut self, w: &Ternary, x: &Quantized, y: &Buffer<f32>, product: Product) {
        let groups = row_groups(self.tuning().lanes);
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Tokens(FEW as u32),
            consts: consts(groups),
            instead: Vec::new(),
            buffers: &[&x.q, &x.scale, y],
        }
        .record(self);
    }
}
