use super::packed::{Packed, QuantizedGroups, Stream, example_matrix, slots_consts};
use super::rows::ShardRows;
use super::weight::{Norm, Product};
use super::workgroups::in_a_row;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Tuning};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "stream_packed",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("norm_weight", Access::Read),
        ("x", Access::Write),
        ("stream", Access::Write),
    ],
    variants: lanes_variants!("lanes", "eights";
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/quantize_results",
        "shared/put_in_stream",
        "shared/packed_slots",
        "shared/copied_input",
        "shared/staged_input",
        "shared/stored_input",
        "shared/stream_rows",
        "stream_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(1);
        consts(&rows, &w, &Tuning::card(None, 256))
    },
};

pub(super) fn consts(rows: &ShardRows, w: &Packed, tuning: &Tuning) -> Vec<Const> {
    slots_consts(rows, w, Product::Add, tuning)
}

impl Recorder<'_> {
    /// Adds the product of `w`, whose codes have 1 or 2 bits, with one token's `q` to the residual stream
    /// `x` `[rows]`. `stream` is then `x` as the input of `norm`, the norm that comes next. The rows
    /// of each shard are a multiple of 32, and the device has at least
    /// [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn stream_packed(
        &mut self,
        w: &Packed,
        q: &QuantizedGroups,
        norm: &Norm,
        x: &Buffer<f32>,
        stream: &Stream,
    ) {
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, self.tuning()),
                &[&shard.codes, &shard.scales, &q.q, &q.scale, &norm.weight, x, &stream.words],
                in_a_row(rows.shard.len() / 32),
            );
        }
    }
}
