use super::{Dense, DenseType, WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Gpu, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_head",
    bindings: &[("embd", Access::Read), ("x", Access::Read), ("logits", Access::Write)],
    variants: lanes_variants!("lanes"; "shared/split_f16", "shared/f16_products", "gemm_head"),
    example: &consts(32, 4, 2560, 128_256, 0, 1000, DenseType::F16Split),
};

const fn consts(
    lanes: u32,
    rows_together: u32,
    k: usize,
    n_vocab: usize,
    first_row: usize,
    rows: usize,
    ty: DenseType,
) -> [Const; 9] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("ROWS", rows_together),
        Const::U32("K", k as u32),
        Const::U32("N_VOCAB", n_vocab as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::Bool("F16", matches!(ty, DenseType::F16)),
        Const::Bool("SPLIT", matches!(ty, DenseType::F16Split)),
    ]
}

/// Rows that the lanes of a row make together, which read each token once for all of them. A CPU would
/// only compile for longer.
fn rows_together(gpu: &Gpu) -> u32 {
    if gpu.software { 1 } else { 4 }
}

/// `logits = embd x` for up to [`super::FEW`] tokens, `x` `[FEW, k]`, `logits` `[FEW, rows]`, one
/// dispatch for each shard; to the bit what [`gemv_head`](super::gemv_head) makes of each.
pub fn gemm_head(
    recorder: &mut Recorder,
    plan: &mut Plan,
    embd: &Dense,
    x: &Buffer<f32>,
    logits: &Buffer<f32>,
) {
    let lanes = recorder.gpu().lanes_per_row();
    let rows_together = rows_together(recorder.gpu());
    for shard in &embd.shards {
        let rows = shard.rows.len();
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(lanes, rows_together, embd.k, embd.rows, shard.rows.start, rows, embd.ty),
            &[&shard.buffer, x, logits],
            in_a_row(rows.div_ceil((rows_together * WORKGROUP / lanes) as usize)),
        );
    }
}
