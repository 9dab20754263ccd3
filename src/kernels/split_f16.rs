use super::{Dense, DenseType, WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Plan, Recorder};
use crate::lanes_variants;

/// The longest row that fits into workgroup memory, beside what its lanes add up.
pub const MAX_SPLIT_COLUMNS: usize = 7680;

pub(super) const KERNEL: Kernel = Kernel {
    name: "split_f16",
    bindings: &[("embd", Access::Write), ("error", Access::Write)],
    variants: lanes_variants!("lanes"; "shared/split_f16", "split_f16"),
    example: &consts(MAX_SPLIT_COLUMNS, 64, 100),
};

const fn consts(k: usize, first_row: usize, rows: usize) -> [Const; 5] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", WORKGROUP),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
    ]
}

/// Parts the f16 of `embd`, rows of at most [`MAX_SPLIT_COLUMNS`], into bytes where they lie, one dispatch
/// for each shard. `error[row] * |x|` `[rows]` is what `gemv_upper` of the result may be off by.
///
/// To be run once, when the values are there. `embd` is of type [`DenseType::F16Split`] when this returns.
pub fn split_f16(recorder: &mut Recorder, plan: &mut Plan, embd: &mut Dense, error: &Buffer<f32>) {
    debug_assert_eq!(embd.ty, DenseType::F16);
    debug_assert!(embd.k <= MAX_SPLIT_COLUMNS);
    for shard in &embd.shards {
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(embd.k, shard.rows.start, shard.rows.len()),
            &[&shard.buffer, error],
            in_a_row(shard.rows.len()),
        );
    }
    embd.ty = DenseType::F16Split;
}
