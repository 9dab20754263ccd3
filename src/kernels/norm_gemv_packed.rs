use super::packed::{Packed, Stream, example_matrix, slots_consts};
use super::rows::ShardRows;
use super::weight::Product;
use super::workgroups::in_a_row;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Tuning};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_packed",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("stream", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups",
        "shared/packed_slots",
        "shared/copied_input",
        "shared/staged_input",
        "shared/stream_input",
        "norm_gemv_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(1);
        consts(&rows, &w, &Tuning::card(None, 256), 1e-6)
    },
};

fn consts(rows: &ShardRows, w: &Packed, tuning: &Tuning, eps: f32) -> Vec<Const> {
    let own = vec![Const::F32("EPS", eps)];
    [slots_consts(rows, w, Product::Store, tuning), own].concat()
}

impl Recorder<'_> {
    /// `y` `[rows]` = the product of `w`, whose codes have 1 or 2 bits, with the norm of the residual
    /// stream `x`. `eps` is the norm's. The device has at least [`MIN_LANES`](super::packed::MIN_LANES) lanes
    /// for a row.
    pub fn norm_gemv_packed(&mut self, w: &Packed, x: &Stream, eps: f32, y: &Buffer<f32>) {
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, self.tuning(), eps),
                &[&shard.codes, &shard.scales, &x.words, y],
                in_a_row(rows.shard.len().div_ceil(32)),
            );
        }
    }
}
