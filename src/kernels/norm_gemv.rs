use super::rows::{RowGroups, ShardRows, TernaryProduct, ternary_consts};
use super::{Norm, Product, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// Each workgroup norms the input anew, so it has many rows; but so few that a large card has a
/// workgroup for each of its processors. These numbers, and those of the other kernels that norm
/// their input, are the best of those tried on an NVIDIA H200 with the sizes of the 2B-4T model.
fn row_groups(product: Product) -> RowGroups {
    let lanes = if product.matrices() == 2 { 8 } else { 16 };
    RowGroups { workgroup: WORKGROUP, lanes, each: 2 }
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/dot4", "shared/gated", "shared/ternary",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        let product = Product::EXAMPLE;
        [ternary_consts(&rows, product, true), consts(product, 1e-5)].concat()
    },
};

fn consts(product: Product, eps: f32) -> Vec<Const> {
    [row_groups(product).consts(), vec![Const::F32("EPS", eps)]].concat()
}

impl Recorder<'_> {
    /// The product of `w` with the norm of one token's `x` `[k]`, quantised. `y` is `[rows]`.
    pub fn norm_gemv(
        &mut self,
        w: &Ternary,
        x: &Buffer<f32>,
        norm: &Norm,
        y: &Buffer<f32>,
        product: Product,
    ) {
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: row_groups(product).rows(),
            tokens: Extent::Fixed(1),
            consts: consts(product, norm.eps),
            buffers: &[x, &norm.weight, y],
        }
        .record(self);
    }
}
