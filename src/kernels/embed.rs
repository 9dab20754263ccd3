use super::rows::{ShardRows, dense_consts};
use super::{Dense, DenseType, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder, Used};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed",
    bindings: &[
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("embd", Access::Read),
        ("shifts", Access::Read),
        ("x", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/rows", "shared/split_f16", "embed"),
    example: || {
        consts(&ShardRows { k: 2560, all: 128_256, shard: 64..164 }, DenseType::F16, 1.0, true)
    },
};

fn consts(rows: &ShardRows, ty: DenseType, scale: f32, has_rows: bool) -> Vec<Const> {
    let own = vec![
        Const::Bool("ROWS", has_rows),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::F32("EMBEDDING_SCALE", scale),
    ];
    [dense_consts(rows, ty, 0), own].concat()
}

impl Recorder<'_> {
    /// `x[t] = scale * embd[tokens[t]]`, one dispatch for each shard. The step says which of `tokens`
    /// these are; `has_rows`: whether it has rows.
    pub fn embed(
        &mut self,
        tokens: &Buffer<u32>,
        embd: &Dense,
        scale: f32,
        x: &Buffer<f32>,
        has_rows: bool,
    ) {
        for shard in &embd.shards {
            // A row for each token, from one of the shards.
            let bytes = embd.k * embd.ty.bytes() * shard.rows.len() / embd.rows;
            let used = shard.buffer.clone().using(Used::Tokens(bytes as u64));
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, embd.ty, scale, has_rows),
                &[tokens, &used, &embd.shifts, x],
                [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
            );
        }
    }
}
