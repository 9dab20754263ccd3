use super::packed::{Format, Packed, Stream};
use super::rows::ShardRows;
use super::weight::Norm;
use super::workgroups::{WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed_stream",
    bindings: &[
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("norm_weight", Access::Read),
        ("x", Access::Write),
        ("stream", Access::Write),
    ],
    variants: lanes_variants!("eights";
        "shared/step",
        "shared/packed",
        "shared/groups",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/put_in_stream",
        "embed_stream"
    ),
    example: || {
        let rows = ShardRows { k: 2048, all: 151_669, shard: 64..164 };
        consts(&rows, &Format::EXAMPLE, 12.0)
    },
};

fn consts(rows: &ShardRows, format: &Format, scale: f32) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::F32("EMBEDDING_SCALE", scale)];
    [rows.consts(), format.consts(rows.k), own].concat()
}

impl Recorder<'_> {
    /// `x` `[k]` = `scale * embd[token]` for the step's only token, as in
    /// [`Recorder::embed_packed`]. `stream` = the same values as the input of `norm`, as in
    /// [`Recorder::stream_of_last`]. There is one dispatch for each shard. The device must have at
    /// least [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn embed_stream(
        &mut self,
        tokens: &Buffer<u32>,
        embd: &Packed,
        scale: f32,
        norm: &Norm,
        x: &Buffer<f32>,
        stream: &Stream,
    ) {
        for shard in &embd.shards {
            let [codes, scales] = embd.looked_up(shard);
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, &embd.format, scale),
                &[tokens, &codes, &scales, &norm.weight, x, &stream.words],
                in_a_row((embd.k / 4).div_ceil(WORKGROUP as usize)),
            );
        }
    }
}
