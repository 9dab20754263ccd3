use super::{Dense, DenseType, WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Gpu, Kernel, Plan, Recorder, Used};
use crate::lanes_variants;

/// Rows one workgroup works on, or as many as it has room for at once.
const ROWS: u32 = 128;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_upper",
    bindings: &[
        ("embd", Access::Read),
        ("x", Access::Read),
        ("error", Access::Read),
        ("approx", Access::Write),
        ("leads", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/split_f16", "shared/best", "gemv_upper"),
    example: &consts(32, 2560, 0, 1000, 0),
};

const fn consts(
    lanes: u32,
    k: usize,
    first_row: usize,
    rows: usize,
    first_lead: usize,
) -> [Const; 7] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("TURNS", rows_of_a_workgroup(lanes) / (WORKGROUP / lanes * 4)),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("FIRST_LEAD", first_lead as u32),
    ]
}

const fn rows_of_a_workgroup(lanes: u32) -> u32 {
    let at_once = WORKGROUP / lanes * 4;
    if at_once > ROWS { at_once } else { ROWS }
}

fn groups(gpu: &Gpu, rows: usize) -> usize {
    rows.div_ceil(rows_of_a_workgroup(gpu.lanes_per_row()) as usize)
}

/// The workgroups that find the approximate logits of `embd`, each with its lead.
pub fn leads(gpu: &Gpu, embd: &Dense) -> usize {
    embd.shards.iter().map(|shard| groups(gpu, shard.rows.len())).sum()
}

/// `approx = embd x` `[rows]` as far as the upper bytes of `embd` say, one dispatch for each shard.
/// `leads` `[leads()]` are the greatest of each workgroup, with their rows' `error` from `split_f16`.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn gemv_upper(
    recorder: &mut Recorder,
    plan: &mut Plan,
    embd: &Dense,
    x: &Buffer<f32>,
    error: &Buffer<f32>,
    approx: &Buffer<f32>,
    leads: &Buffer<[f32; 2]>,
) {
    debug_assert_eq!(embd.ty, DenseType::F16Split);
    let lanes = recorder.gpu().lanes_per_row();
    let mut first_lead = 0;
    for shard in &embd.shards {
        let groups = groups(recorder.gpu(), shard.rows.len());
        let upper = shard.buffer.clone().using(Used::Fixed(shard.buffer.bytes() / 2));
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(lanes, embd.k, shard.rows.start, shard.rows.len(), first_lead),
            &[&upper, x, error, approx, leads],
            in_a_row(groups),
        );
        first_lead += groups;
    }
}
