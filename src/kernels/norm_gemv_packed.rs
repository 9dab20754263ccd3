use super::packed::{Packed, example_matrix, normed_row_groups, packed_consts};
use super::rows::{RowGroups, ShardRows};
use super::{Norm, Product, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_packed",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/quantize_group",
        "shared/normed_groups",
        "shared/normed_packed",
        "norm_gemv_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(1);
        consts(&rows, &w, true, row_groups(32), 1e-6)
    },
};

fn row_groups(lanes: u32) -> RowGroups {
    normed_row_groups(Product::Store, lanes)
}

fn consts(
    rows: &ShardRows,
    w: &Packed,
    packed_dot: bool,
    groups: RowGroups,
    eps: f32,
) -> Vec<Const> {
    let own = vec![Const::F32("EPS", eps)];
    [packed_consts(rows, w, Product::Store, packed_dot), groups.consts(), own].concat()
}

impl Recorder<'_> {
    /// `y` `[rows]` = the product of `w`, whose codes have 2 bits, with the norm of one token's `x`
    /// `[k]`, quantised.
    pub fn norm_gemv_packed(&mut self, w: &Packed, x: &Buffer<f32>, norm: &Norm, y: &Buffer<f32>) {
        let tuning = self.tuning();
        let groups = row_groups(tuning.lanes);
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, tuning.has_packed_dot(), groups, norm.eps),
                &[&shard.codes, &shard.scales, x, &norm.weight, y],
                in_a_row(rows.shard.len().div_ceil(groups.rows())),
            );
        }
    }
}
