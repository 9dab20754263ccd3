use super::{Dense, DenseType, WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_head",
    bindings: &[("embd", Access::Read), ("x", Access::Read), ("logits", Access::Write)],
    variants: lanes_variants!("lanes"; "shared/f16_products", "gemv_head", "shared/gemv_rows"),
    example: &consts(32, 2560, 0, 1000, true),
};

const fn consts(lanes: u32, k: usize, first_row: usize, rows: usize, f16: bool) -> [Const; 6] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::Bool("F16", f16),
    ]
}

/// `logits = embd x`, the LM head on the tied embedding of f16 or f32, one dispatch for each shard.
pub fn gemv_head(
    recorder: &mut Recorder,
    plan: &mut Plan,
    embd: &Dense,
    x: &Buffer<f32>,
    logits: &Buffer<f32>,
) {
    debug_assert_ne!(embd.ty, DenseType::F16Split, "gemv_head_split takes that");
    let lanes = recorder.gpu().lanes_per_row();
    for shard in &embd.shards {
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(lanes, embd.k, shard.rows.start, shard.rows.len(), embd.ty == DenseType::F16),
            &[&shard.buffer, x, logits],
            in_a_row(shard.rows.len().div_ceil((WORKGROUP / lanes) as usize)),
        );
    }
}
