use super::{Dense, DenseType, WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_head_split",
    bindings: &[("embd", Access::Read), ("x", Access::Read), ("logits", Access::Write)],
    variants: lanes_variants!(
        "lanes"; "shared/split_f16",
        "shared/f16_products",
        "gemv_head_split",
        "shared/split_row",
        "shared/gemv_rows"
    ),
    example: &consts(32, 2560, 0, 1000),
};

const fn consts(lanes: u32, k: usize, first_row: usize, rows: usize) -> [Const; 5] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
    ]
}

/// `logits = embd x` as [`gemv_head`](super::gemv_head) computes it, to the bit, from an embedding
/// that `split_f16` has parted into bytes; one dispatch for each shard.
pub fn gemv_head_split(
    recorder: &mut Recorder,
    plan: &mut Plan,
    embd: &Dense,
    x: &Buffer<f32>,
    logits: &Buffer<f32>,
) {
    debug_assert_eq!(embd.ty, DenseType::F16Split);
    let lanes = recorder.gpu().lanes_per_row();
    for shard in &embd.shards {
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(lanes, embd.k, shard.rows.start, shard.rows.len()),
            &[&shard.buffer, x, logits],
            in_a_row(shard.rows.len().div_ceil((WORKGROUP / lanes) as usize)),
        );
    }
}
