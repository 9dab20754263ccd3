use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::weight::{Product, Quantized, Ternary};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// Tokens that are computed at a time, if there are several.
const TOKENS: u32 = 4;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_i2s",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/step", "shared/dot4", "shared/gated", "shared/ternary", "shared/ternary_product", "shared/rows_of_tokens", "gemv_i2s"),
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        let consts = consts(row_groups(32), TOKENS);
        [ternary_consts(&rows, Product::EXAMPLE, true), consts].concat()
    },
};

fn row_groups(lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes, each: 1 }
}

fn consts(groups: RowGroups, tokens: u32) -> Vec<Const> {
    [groups.consts(), vec![Const::U32("TOKENS", tokens)]].concat()
}

impl Recorder<'_> {
    /// The product of `w` with the only token of `x`. `y` is `[rows]`.
    pub fn gemv_i2s(&mut self, w: &Ternary, x: &Quantized, y: &Buffer<f32>, product: Product) {
        self.products(1, w, x, y, product);
    }

    /// The product of `w` with every token of `x`, four at a time. `y` is `[n_tokens, rows]`.
    pub fn gemv_i2s_of_several(
        &mut self,
        w: &Ternary,
        x: &Quantized,
        y: &Buffer<f32>,
        product: Product,
    ) {
        self.products(TOKENS, w, x, y, product);
    }

    fn products(
        &mut self,
        tokens: u32,
        w: &Ternary,
        x: &Quantized,
        y: &Buffer<f32>,
        product: Product,
    ) {
        let groups = row_groups(self.tuning().lanes);
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Tokens(tokens),
            consts: consts(groups, tokens),
            instead: Vec::new(),
            buffers: &[&x.q, &x.scale, y],
        }
        .record(self);
    }
}
