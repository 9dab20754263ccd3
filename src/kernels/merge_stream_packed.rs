use super::attention::{AttentionShape, Partials};
use super::packed::{Packed, Stream, example_matrix};
use super::rows::ShardRows;
use super::splits::{FEW_SPLITS, MAX_SPLITS, splits_const};
use super::stream_packed;
use super::weight::Norm;
use super::workgroups::in_a_row;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Tuning};
use crate::lanes_variants;

/// The longest row whose activations fit into the 16 KiB of workgroup memory that every adapter
/// has, beside what reductions without subgroup operations take.
const MAX_COLUMNS: usize = 4096;

pub(super) const KERNEL: Kernel = Kernel {
    name: "merge_stream_packed",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("norm_weight", Access::Read),
        ("x", Access::Write),
        ("stream", Access::Write),
    ],
    variants: lanes_variants!("lanes", "eights";
        "shared/step",
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/quantize_results",
        "shared/put_in_stream",
        "shared/merged",
        "shared/packed_slots",
        "shared/copied_input",
        "shared/stream_rows",
        "merge_stream_packed"
    ),
    example: || {
        let (_, w) = example_matrix(1);
        let shape = AttentionShape { n_head: MAX_COLUMNS / 128, ..AttentionShape::EXAMPLE };
        let rows = ShardRows { k: MAX_COLUMNS, all: w.rows, shard: 0..w.rows };
        consts(&rows, &w, &Tuning::card(None, 256), &shape, MAX_SPLITS)
    },
};

fn consts(
    rows: &ShardRows,
    w: &Packed,
    tuning: &Tuning,
    shape: &AttentionShape,
    splits: u32,
) -> Vec<Const> {
    let own = vec![splits_const(splits)];
    [stream_packed::consts(rows, w, tuning), shape.consts(), own].concat()
}

impl Packed {
    /// Whether [`Recorder::merge_stream_packed`] takes rows as long as these.
    pub fn merges(&self) -> bool {
        self.k <= MAX_COLUMNS
    }
}

impl Recorder<'_> {
    /// As [`Recorder::stream_packed`], with the outputs of attention, merged from `partials` and
    /// quantised. [`Packed::merges`] says whether it takes `w`.
    pub fn merge_stream_packed(
        &mut self,
        w: &Packed,
        partials: &Partials,
        norm: &Norm,
        x: &Buffer<f32>,
        stream: &Stream,
    ) {
        let Partials { shape, sums, max_total } = partials;
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            let tuning = self.tuning();
            let consts = |splits| consts(&rows, w, tuning, shape, splits);
            let groups = in_a_row(rows.shard.len() / 32);
            self.dispatch(
                &KERNEL,
                &consts(MAX_SPLITS),
                &[&shard.codes, &shard.scales, sums, max_total, &norm.weight, x, &stream.words],
                groups,
            );
            for (splits, is_taken) in FEW_SPLITS {
                self.instead(is_taken, &KERNEL, &consts(splits), groups);
            }
        }
    }
}
