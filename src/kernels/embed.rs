use super::rows::{ShardRows, dense_consts, ranges, rows_of, shard_buffers, shard_consts};
use super::step_rows::StepRows;
use super::weight::{Dense, DenseType};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Bound, Buffer, Const, Extent, Kernel, Recorder, Used};
use crate::one_variant;

/// The most shards of one dispatch. It has bindings for so many.
const TOGETHER: usize = 5;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed",
    bindings: &[
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("embd", Access::Read),
        ("shifts", Access::Read),
        ("x", Access::Write),
        ("embd_1", Access::Read),
        ("embd_2", Access::Read),
        ("embd_3", Access::Read),
        ("embd_4", Access::Read),
    ],
    variants: one_variant!("shared/step", "shared/rows", "shared/split_f16", "embed"),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 64..164 };
        let shards = shard_consts(&[64..100, 100..164]);
        [consts(&rows, DenseType::F16, 1.0, true), shards].concat()
    },
};

fn consts(rows: &ShardRows, ty: DenseType, scale: f32, has_rows: bool) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::F32("EMBEDDING_SCALE", scale)];
    [dense_consts(rows, ty, 0), StepRows::of_tokens(has_rows).consts().into(), own].concat()
}

impl Recorder<'_> {
    /// `x[t] = scale * embd[tokens[t]]`, with one dispatch for several shards. The step says which
    /// of `tokens` these are. `has_rows` says whether it has rows.
    pub fn embed(
        &mut self,
        tokens: &Buffer<u32>,
        embd: &Dense,
        scale: f32,
        x: &Buffer<f32>,
        has_rows: bool,
    ) {
        for shards in embd.shards.chunks(TOGETHER) {
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: rows_of(shards) };
            let consts =
                [consts(&rows, embd.ty, scale, has_rows), shard_consts(&ranges(shards))].concat();
            // A step reads a row for each token, from one of the shards.
            let bytes = |rows: usize| embd.k * embd.ty.bytes() * rows / embd.rows;
            let bound = shard_buffers(shards, TOGETHER, |shard| {
                Used::Tokens(bytes(shard.rows.len()) as u64)
            });
            let mut buffers: Vec<&dyn Bound> = vec![tokens, &bound[0], &embd.shifts, x];
            buffers.extend(bound[1..].iter().map(|buffer| buffer as &dyn Bound));
            let groups = [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)];
            self.dispatch(&KERNEL, &consts, &buffers, groups);
        }
    }
}
