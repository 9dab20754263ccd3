use super::packed::{Packed, QuantizedGroups, Stream, example_matrix, slots_consts};
use super::rows::ShardRows;
use super::weight::Product;
use super::workgroups::in_a_row;
use crate::gpu::{Access, Const, Kernel, Recorder, Tuning};
use crate::lanes_variants;
use crate::model::Activation;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gated_packed",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("stream", Access::Read),
        ("y", Access::Write),
        ("y_scale", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group", "eights";
        "shared/dot4",
        "shared/gated",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/quantize_results",
        "shared/packed_slots",
        "shared/copied_input",
        "shared/staged_input",
        "shared/stream_input",
        "norm_gated_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(2);
        consts(&rows, &w, Product::EXAMPLE, &Tuning::card(None, 256), 1e-6)
    },
};

fn consts(rows: &ShardRows, w: &Packed, product: Product, tuning: &Tuning, eps: f32) -> Vec<Const> {
    let own = vec![Const::F32("EPS", eps)];
    [slots_consts(rows, w, product, tuning), own].concat()
}

impl Recorder<'_> {
    /// `y` `[rows]` = the int8 quantisation of `activation(gate) * up`, with a scale for each 32
    /// values. gate and up are the products of `w`, whose codes have 1 or 2 bits, with the norm of the
    /// residual stream `x`. `eps` is the norm's. The rows of each shard are a multiple of 32, and
    /// the device has at least [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn norm_gated_packed(
        &mut self,
        w: &Packed,
        x: &Stream,
        eps: f32,
        activation: Activation,
        y: &QuantizedGroups,
    ) {
        let product = Product::Gated(activation);
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, product, self.tuning(), eps),
                &[&shard.codes, &shard.scales, &x.words, &y.q, &y.scale],
                in_a_row(rows.shard.len() / 32),
            );
        }
    }
}
