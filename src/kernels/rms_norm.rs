use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step, Used};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm",
    bindings: &[
        ("step", Access::Uniform),
        ("x", Access::Read),
        ("weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/step", "rms_norm"),
    example: &consts(2560, 1e-5),
};

/// The constants of every kernel that norms rows of `n`.
pub(super) const fn consts(n: usize, eps: f32) -> [Const; 3] {
    [Const::U32("WORKGROUP", WORKGROUP), Const::U32("N", n as u32), Const::F32("EPS", eps)]
}

/// `y = x / sqrt(mean(x²) + eps) * weight` for the last token of the step, `x` `[n_tokens, n]`.
pub fn rms_norm(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    x: &Buffer<f32>,
    weight: &Buffer<f32>,
    y: &Buffer<f32>,
    eps: f32,
) {
    let last = x.clone().using(Used::Fixed(weight.bytes()));
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(weight.len(), eps),
        &[step, &last, weight, y],
        [Extent::Fixed(1); 3],
    );
}
