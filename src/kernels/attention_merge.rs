use super::{AttentionShape, Parts, Quantized, WORKGROUP, lanes_of_norm};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

/// Parts of the context that one token's attention is split into, at most. All products with its output read
/// all parts: with more of them these take longer than the attention gains.
pub const MAX_SPLITS: u32 = 12;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_merge",
    bindings: &[
        ("step", Access::Step),
        ("part", Access::Read),
        ("part_ml", Access::Read),
        ("norm_weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
    ],
    variants: lanes_variants!("group";
        "shared/step",
        "shared/quantize",
        "shared/merged_input",
        "shared/normed_input",
        "attention_merge"
    ),
    example: &consts(WORKGROUP, 20, 128, 1e-5),
};

const fn consts(workgroup: u32, n_head: usize, head_dim: usize, eps: f32) -> [Const; 5] {
    [
        Const::U32("WORKGROUP", workgroup),
        Const::U32("N_HEAD", n_head as u32),
        Const::U32("HEAD_DIM", head_dim as u32),
        Const::U32("K", (n_head * head_dim) as u32),
        Const::F32("EPS", eps),
    ]
}

/// `y` = int8 quantisation of the sub-norm of all heads' outputs, put together from their parts.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn attention_merge(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    parts: &Parts,
    weight: &Buffer<f32>,
    y: &Quantized,
    eps: f32,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(lanes_of_norm(recorder.gpu()), shape.n_head, shape.head_dim, eps),
        &[step, &parts.part, &parts.part_ml, weight, &y.q, &y.scale],
        [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
