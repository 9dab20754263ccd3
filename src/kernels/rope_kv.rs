use super::{AttentionShape, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rope_kv",
    bindings: &[
        ("step", Access::Step),
        ("qkv", Access::Read),
        ("turns", Access::Read),
        ("q", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: one_variant!("shared/step", "rope_kv"),
    example: &consts(&AttentionShape::EXAMPLE),
};

const fn consts(shape: &AttentionShape) -> [Const; 5] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("N_Q", (shape.n_head * shape.head_dim) as u32),
        Const::U32("N_KV", (shape.n_head_kv * shape.head_dim) as u32),
        Const::U32("HEAD_DIM", shape.head_dim as u32),
        Const::Bool("KV_F16", shape.kv_f16),
    ]
}

/// Turns q and k of `qkv` `[n_tokens, n_q + 2 n_kv]` by position (RoPE, NeoX pairs, `turns` `[n_ctx,
/// head_dim / 2]` holds cos and sin); q, divided by `sqrt(head_dim)`, goes to `q`, k and v to the cache.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn rope_kv(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    qkv: &Buffer<f32>,
    turns: &Buffer<[f32; 2]>,
    q: &Buffer<f32>,
    k_cache: &Buffer<u32>,
    v_cache: &Buffer<u32>,
) {
    let threads = (shape.n_head + 2 * shape.n_head_kv) * shape.head_dim / 4;
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(shape),
        &[step, qkv, turns, q, k_cache, v_cache],
        [Extent::Fixed((threads as u32).div_ceil(WORKGROUP)), Extent::Tokens(1), Extent::Fixed(1)],
    );
}
