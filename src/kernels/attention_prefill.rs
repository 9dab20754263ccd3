use super::{AttentionShape, Parts};
use crate::gpu::{Access, Buffer, Extent, Kernel, Plan, Recorder, Step};
use crate::one_variant;

/// Rows of a tile, one for each head of each token, as in the shader.
const ROWS: u32 = 64;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_prefill",
    bindings: &[
        ("step", Access::Step),
        ("queries", Access::Read),
        ("k_cache", Access::Read),
        ("v_cache", Access::Read),
        ("part", Access::Write),
        ("part_ml", Access::Write),
    ],
    variants: one_variant!("shared/step", "attention_prefill"),
    example: &AttentionShape::EXAMPLE.consts(AttentionShape::EXAMPLE.heads_in_vector(4)),
};

/// `softmax(q · k) v`, causal, of many tokens, in `n_splits` parts of the context each. Heads of at most
/// [`super::MAX_HEAD_DIM`] values.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn attention_prefill(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    q: &Buffer<f32>,
    k_cache: &Buffer<u32>,
    v_cache: &Buffer<u32>,
    out: &Parts,
) {
    let heads = shape.heads_in_vector(4);
    recorder.dispatch(
        plan,
        &KERNEL,
        &shape.consts(heads),
        &[step, q, k_cache, v_cache, &out.part, &out.part_ml],
        [Extent::Fixed(shape.n_head as u32 / heads), Extent::Tokens(ROWS / heads), Extent::Splits],
    );
}
