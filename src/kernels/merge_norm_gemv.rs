use super::{AttentionShape, Parts, RowGroups, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "merge_norm_gemv",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("part", Access::Read),
        ("part_ml", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/step",
        "shared/ternary",
        "shared/quantize",
        "shared/merged_input",
        "shared/normed_input",
        "shared/normed_rows",
        "merge_norm_gemv"
    ),
    example: &consts(true, &AttentionShape::EXAMPLE, 2560, 0, 2560, 1e-5),
};

const ROW_GROUPS: RowGroups = RowGroups { lanes: 16, each: 2 };

const fn consts(
    packed_dot: bool,
    shape: &AttentionShape,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    eps: f32,
) -> [Const; 11] {
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", ROW_GROUPS.lanes),
        Const::U32("EACH", ROW_GROUPS.each),
        Const::U32("N_HEAD", shape.n_head as u32),
        Const::U32("HEAD_DIM", shape.head_dim as u32),
        Const::U32("K", (shape.n_head * shape.head_dim) as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::F32("EPS", eps),
    ]
}

/// `y` `[rows]` += the product of `w` with the sub-norm, quantised, of one token's heads' outputs,
/// put together from their parts.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn merge_norm_gemv(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    w: &Ternary,
    parts: &Parts,
    norm_weight: &Buffer<f32>,
    y: &Buffer<f32>,
    eps: f32,
) {
    for shard in &w.shards {
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(
                recorder.gpu().has_packed_dot(),
                shape,
                w.rows,
                shard.rows.start,
                shard.rows.len(),
                eps,
            ),
            &[step, &shard.buffer, &w.scale, &parts.part, &parts.part_ml, norm_weight, y],
            [
                Extent::Fixed(ROW_GROUPS.workgroups(shard.rows.len())),
                Extent::Fixed(1),
                Extent::Fixed(1),
            ],
        );
    }
}
