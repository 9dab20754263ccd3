use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step, Used};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm",
    bindings: &[
        ("step", Access::Step),
        ("x", Access::Read),
        ("weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/step", "rms_norm"),
    example: &consts(false, 2560, 1e-5),
};

const fn consts(each: bool, n: usize, eps: f32) -> [Const; 4] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("N", n as u32),
        Const::F32("EPS", eps),
        Const::Bool("EACH", each),
    ]
}

/// `y = x / sqrt(mean(x²) + eps) * weight` for the last token of the step, `x` `[n_tokens, n]`, `y` `[n]`;
/// or, if `each`, for each token, `y` `[n_tokens, n]`.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn rms_norm(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    x: &Buffer<f32>,
    weight: &Buffer<f32>,
    y: &Buffer<f32>,
    each: bool,
    eps: f32,
) {
    let used = if each { x.clone() } else { x.clone().using(Used::Fixed(weight.bytes())) };
    let rows = if each { Extent::Tokens(1) } else { Extent::Fixed(1) };
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(each, weight.len(), eps),
        &[step, &used, weight, y],
        [rows, Extent::Fixed(1), Extent::Fixed(1)],
    );
}
