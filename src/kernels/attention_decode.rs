use super::{AttentionShape, Parts, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

/// Heads that read a key or a value together. With two rather than four there are twice the workgroups,
/// each with half the work, where one token leaves most of a card idle.
const HEADS: usize = 2;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_decode",
    bindings: &[
        ("step", Access::Step),
        ("queries", Access::Read),
        ("k_cache", Access::Read),
        ("v_cache", Access::Read),
        ("part", Access::Write),
        ("part_ml", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group"; "shared/step", "attention_decode"),
    example: &consts(&AttentionShape::EXAMPLE),
};

const fn consts(shape: &AttentionShape) -> [Const; 6] {
    let [heads, n_head, n_head_kv, head_dim, kv_f16] = shape.consts(shape.heads_in_vector(HEADS));
    [Const::U32("WORKGROUP", WORKGROUP), heads, n_head, n_head_kv, head_dim, kv_f16]
}

/// `softmax(q · k) v` of few tokens, in `n_splits` parts of the context. Heads of at most
/// [`super::MAX_HEAD_DIM`] values.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn attention_decode(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    q: &Buffer<f32>,
    k_cache: &Buffer<u32>,
    v_cache: &Buffer<u32>,
    out: &Parts,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(shape),
        &[step, q, k_cache, v_cache, &out.part, &out.part_ml],
        [
            Extent::Fixed(shape.n_head as u32 / shape.heads_in_vector(HEADS)),
            Extent::Splits,
            Extent::Tokens(1),
        ],
    );
}
