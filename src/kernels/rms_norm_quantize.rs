use super::{Quantized, WORKGROUP, lanes_of_norm};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm_quantize",
    bindings: &[
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/quantize", "shared/normed_input", "rms_norm_quantize"),
    example: &consts(WORKGROUP, 2560, 1e-5),
};

const fn consts(workgroup: u32, k: usize, eps: f32) -> [Const; 3] {
    [Const::U32("WORKGROUP", workgroup), Const::U32("K", k as u32), Const::F32("EPS", eps)]
}

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
        &consts(lanes_of_norm(recorder.gpu()), weight.len(), eps),
        &[x, weight, &y.q, &y.scale],
        [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
