use super::{AttentionShape, RowGroups, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_rope_kv",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("turns", Access::Read),
        ("queries", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/step",
        "shared/ternary",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv_rope_kv"
    ),
    example: &consts(true, &AttentionShape::EXAMPLE, 2560, 0, 3840, 1e-5),
};

const ROW_GROUPS: RowGroups = RowGroups { lanes: 16, each: 2 };

const fn consts(
    packed_dot: bool,
    shape: &AttentionShape,
    k: usize,
    first_row: usize,
    rows: usize,
    eps: f32,
) -> [Const; 11] {
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", ROW_GROUPS.lanes),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("N_Q", (shape.n_head * shape.head_dim) as u32),
        Const::U32("N_KV", (shape.n_head_kv * shape.head_dim) as u32),
        Const::U32("HEAD_DIM", shape.head_dim as u32),
        Const::Bool("KV_F16", shape.kv_f16),
        Const::F32("EPS", eps),
    ]
}

/// q, k and v of one token: `w` times the norm of `x` `[k]`, quantised. q and k are turned by position
/// (RoPE, NeoX pairs; `turns` `[n_ctx, head_dim / 2]` holds cos and sin); q, divided by
/// `sqrt(head_dim)`, goes to `q`, k and v to the cache.
///
/// The shards of `w` end where heads do.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn norm_gemv_rope_kv(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    w: &Ternary,
    x: &Buffer<f32>,
    norm_weight: &Buffer<f32>,
    turns: &Buffer<[f32; 2]>,
    q: &Buffer<f32>,
    k_cache: &Buffer<u32>,
    v_cache: &Buffer<u32>,
    eps: f32,
) {
    for shard in &w.shards {
        let rows = shard.rows.len();
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(recorder.gpu().has_packed_dot(), shape, w.k, shard.rows.start, rows, eps),
            &[step, &shard.buffer, &w.scale, x, norm_weight, turns, q, k_cache, v_cache],
            [Extent::Fixed(ROW_GROUPS.workgroups(rows)), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
