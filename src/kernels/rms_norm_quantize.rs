use super::Quantized;
use super::rms_norm::consts;
use crate::gpu::{Access, Buffer, Extent, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm_quantize",
    bindings: &[
        ("x", Access::Read),
        ("weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/quantize", "rms_norm_quantize"),
    example: &consts(2560, 1e-5),
};

/// `y` = int8 quantisation of the norm of each row of `x` `[n_tokens, n]`, `n` a multiple of 128.
pub fn rms_norm_quantize(
    recorder: &mut Recorder,
    plan: &mut Plan,
    x: &Buffer<f32>,
    weight: &Buffer<f32>,
    y: &Quantized,
    eps: f32,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(weight.len(), eps),
        &[x, weight, &y.q, &y.scale],
        [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
