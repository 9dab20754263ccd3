use super::packed::{
    GATED_LANES, Packed, QuantizedGroups, example_matrix, normed_row_groups, packed_consts,
};
use super::rows::{RowGroups, ShardRows};
use super::{Norm, Product};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;
use crate::model::Activation;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gated_packed",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
        ("y_scale", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/dot4",
        "shared/gated",
        "shared/packed",
        "shared/packed_dot",
        "shared/quantize_group",
        "shared/normed_groups",
        "shared/normed_packed",
        "norm_gated_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(2);
        consts(&rows, &w, Product::EXAMPLE, true, 1e-6)
    },
};

/// A workgroup has 32 rows, and quantises its results as one group.
fn row_groups(product: Product) -> RowGroups {
    normed_row_groups(product, GATED_LANES)
}

fn consts(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    packed_dot: bool,
    eps: f32,
) -> Vec<Const> {
    let own = vec![Const::F32("EPS", eps)];
    [packed_consts(rows, w, product, packed_dot), row_groups(product).consts(), own].concat()
}

impl Recorder<'_> {
    /// `y` `[rows]` = the int8 quantisation of `activation(gate) * up`, with a scale for each 32
    /// values. gate and up are the products of `w`, whose codes have 2 bits, with the norm of one
    /// token's `x` `[k]`, quantised. The rows of each shard are a multiple of 32, and the device
    /// has at least [`GATED_LANES`] lanes for a row.
    pub fn norm_gated_packed(
        &mut self,
        w: &Packed,
        x: &Buffer<f32>,
        norm: &Norm,
        activation: Activation,
        y: &QuantizedGroups,
    ) {
        let product = Product::Gated(activation);
        let packed_dot = self.tuning().has_packed_dot();
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, product, packed_dot, norm.eps),
                &[&shard.codes, &shard.scales, x, &norm.weight, &y.q, &y.scale],
                [Extent::Fixed(rows.shard.len() as u32 / 32), Extent::Fixed(1), Extent::Fixed(1)],
            );
        }
    }
}
