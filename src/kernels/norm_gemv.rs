use super::rows::{RowGroups, ShardRows, TernaryProduct, norm_consts, ternary_consts, weight_or};
use super::weight::{Norm, Product, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder, Tuning};
use crate::lanes_variants;

/// Each workgroup norms the input anew, so it has many rows; but so few that a large card has a
/// workgroup for each of its processors. These numbers, and those of the other kernels that norm
/// their input, are the best of those tried on an NVIDIA H200 with the sizes of the 2B-4T model.
fn row_groups(tuning: &Tuning, k: usize, product: Product) -> RowGroups {
    let matrices = product.matrices();
    RowGroups::normed(tuning, k, if matrices == 2 { 8 } else { 16 }, matrices as u32)
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
        "shared/dot4", "shared/gated", "shared/ternary", "shared/ternary_product",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        let product = Product::EXAMPLE;
        let groups = row_groups(&Tuning::card(None, 256), rows.k, product);
        [ternary_consts(&rows, product, true), consts(groups.normed_consts_if(false), Some(1e-5))]
            .concat()
    },
};

fn consts(groups: Vec<Const>, eps: Option<f32>) -> Vec<Const> {
    [groups, norm_consts(eps)].concat()
}

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
        let groups = row_groups(self.tuning(), w.k, product);
        let weight = weight_or(norm, x);
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: groups.rows(),
            tokens: Extent::Fixed(1),
            consts: consts(groups.normed_consts(self.gpu(), w.k, 0), norm.map(|norm| norm.eps)),
            instead: Vec::new(),
            buffers: &[x, &weight, y],
        }
        .record(self);
    }
}
