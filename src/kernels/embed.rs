use super::{Dense, DenseType, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Used};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed",
    bindings: &[("tokens", Access::Read), ("embd", Access::Read), ("x", Access::Write)],
    variants: one_variant!("embed"),
    example: &[
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("N_EMBD", 2560),
        Const::U32("FIRST_ROW", 64),
        Const::U32("N_ROWS", 100),
        Const::Bool("F16", true),
    ],
};

/// `x[t] = embd[tokens[t]]`, one dispatch for each shard.
pub fn embed(
    recorder: &mut Recorder,
    plan: &mut Plan,
    tokens: &Buffer<u32>,
    embd: &Dense,
    x: &Buffer<f32>,
) {
    for shard in &embd.shards {
        // A row for each token, from one of the shards.
        let bytes = embd.k * embd.ty.bytes() * shard.rows.len() / embd.rows;
        let rows = shard.buffer.clone().using(Used::Tokens(bytes as u64));
        recorder.dispatch(
            plan,
            &KERNEL,
            &[
                Const::U32("WORKGROUP", WORKGROUP),
                Const::U32("N_EMBD", embd.k as u32),
                Const::U32("FIRST_ROW", shard.rows.start as u32),
                Const::U32("N_ROWS", shard.rows.len() as u32),
                Const::Bool("F16", embd.ty == DenseType::F16),
            ],
            &[tokens, &rows, x],
            [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
