use super::{Dense, DenseType, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Used};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "embed",
    bindings: &[("tokens", Access::Read), ("embd", Access::Read), ("x", Access::Write)],
    variants: one_variant!("shared/split_f16", "embed"),
    example: &consts(2560, 64, 100, DenseType::F16),
};

const fn consts(n_embd: usize, first_row: usize, rows: usize, ty: DenseType) -> [Const; 6] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("N_EMBD", n_embd as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::Bool("F16", !matches!(ty, DenseType::F32)),
        Const::Bool("SPLIT", matches!(ty, DenseType::F16Split)),
    ]
}

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
            &consts(embd.k, shard.rows.start, shard.rows.len(), embd.ty),
            &[tokens, &rows, x],
            [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
