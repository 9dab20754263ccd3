use super::packed::{Format, Packed};
use super::rows::ShardRows;
use super::step_rows::StepRows;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed_packed",
    bindings: &[
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/rows", "shared/packed", "embed_packed"),
    example: || {
        let rows = ShardRows { k: 2048, all: 151_669, shard: 64..164 };
        consts(&rows, &Format::EXAMPLE, 12.0, true)
    },
};

fn consts(rows: &ShardRows, format: &Format, scale: f32, has_rows: bool) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::F32("EMBEDDING_SCALE", scale)];
    [rows.consts(), format.consts(rows.k), StepRows::of_tokens(has_rows).consts().into(), own]
        .concat()
}

impl Recorder<'_> {
    /// `x[t] = scale * embd[tokens[t]]`, with one dispatch for each shard. The step says which of
    /// `tokens` these are. `has_rows` says whether it has rows.
    pub fn embed_packed(
        &mut self,
        tokens: &Buffer<u32>,
        embd: &Packed,
        scale: f32,
        x: &Buffer<f32>,
        has_rows: bool,
    ) {
        for shard in &embd.shards {
            let [codes, scales] = embd.looked_up(shard);
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, &embd.format, scale, has_rows),
                &[tokens, &codes, &scales, x],
                [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
            );
        }
    }
}
