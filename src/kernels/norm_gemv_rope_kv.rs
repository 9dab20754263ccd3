use super::{AttentionShape, RowGroups, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_rope_kv",
    bindings: &[
        ("step", Access::Uniform),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("turns", Access::Read),
        ("queries", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: lanes_variants!(
        "shared/step",
        "shared/ternary",
        "shared/quantize",
        "shared/normed_rows",
        "norm_gemv_rope_kv"
    ),
    example: &consts(
        RowGroups { workgroup: 256, lanes: 16, each: 2 },
        &AttentionShape { n_head: 20, n_head_kv: 5, head_dim: 128, kv_f16: true },
        2560,
        0,
        3840,
        1e-5,
    ),
};

const fn consts(
    groups: RowGroups,
    shape: &AttentionShape,
    k: usize,
    first_row: usize,
    rows: usize,
    eps: f32,
) -> [Const; 11] {
    [
        Const::U32("WORKGROUP", groups.workgroup),
        Const::U32("LANES", groups.lanes),
        Const::U32("K", k as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("N_Q", (shape.n_head * shape.head_dim) as u32),
        Const::U32("N_KV", (shape.n_head_kv * shape.head_dim) as u32),
        Const::U32("HEAD_DIM", shape.head_dim as u32),
        Const::Bool("KV_F16", shape.kv_f16),
        Const::Bool("PREFETCH", true),
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
    let groups = RowGroups::tuned("QKV", 256, 16, 2);
    for shard in &w.shards {
        let rows = shard.rows.len();
        recorder.dispatch(
            plan,
            &KERNEL,
            &groups.consts(consts(groups, shape, w.k, shard.rows.start, rows, eps)),
            &[step, &shard.buffer, &w.scale, x, norm_weight, turns, q, k_cache, v_cache],
            [Extent::Fixed(groups.workgroups(rows)), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
