use super::attention::{AttentionShape, Partials};
use super::rows::{
    Instead, RowGroups, ShardRows, TernaryProduct, norm_consts, ternary_consts, weight_or,
};
use super::splits::{FEW_SPLITS, MAX_SPLITS, splits_const};
use super::weight::{Norm, Product, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder, Tuning};
use crate::lanes_variants;

/// See `norm_gemv`.
fn row_groups(tuning: &Tuning, k: usize) -> RowGroups {
    RowGroups::normed(tuning, k, 16, 1)
}

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
        "shared/dot4", "shared/gated", "shared/ternary", "shared/ternary_product",
        "shared/quantize",
        "shared/merged",
        "shared/merged_input",
        "shared/normed_input",
        "shared/normed_rows",
        "merge_norm_gemv"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 2560, shard: 0..2560 };
        let groups = row_groups(&Tuning::card(None, 256), rows.k);
        let consts = consts(
            &AttentionShape::EXAMPLE,
            groups.normed_consts_if(false),
            Some(1e-5),
            MAX_SPLITS,
        );
        [ternary_consts(&rows, Product::Add, true), consts].concat()
    },
};

fn consts(shape: &AttentionShape, groups: Vec<Const>, eps: Option<f32>, splits: u32) -> Vec<Const> {
    let own = vec![splits_const(splits)];
    [shape.consts(), groups, norm_consts(eps), own].concat()
}

impl Recorder<'_> {
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
        let groups = row_groups(self.tuning(), w.k);
        let weight = weight_or(norm, sums);
        let consts = |splits| {
            let groups = groups.normed_consts(self.gpu(), w.k, 0);
            consts(shape, groups, norm.map(|norm| norm.eps), splits)
        };
        let few = FEW_SPLITS.map(|(splits, is_taken)| Instead { is_taken, consts: consts(splits) });
        TernaryProduct {
            kernel: &KERNEL,
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
