use super::SamplingParams;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::one_variant;

/// Tokens one workgroup looks at.
pub(super) const STRETCH: usize = 1024;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_best",
    bindings: &[
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("logits", Access::Read),
        ("threshold", Access::Read),
        ("best", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/sampling", "shared/best", "sample_best"),
    example: &consts(128_256),
};

const fn consts(n_vocab: usize) -> [Const; 2] {
    [Const::U32("N_VOCAB", n_vocab as u32), Const::U32("STRETCH", STRETCH as u32)]
}

/// The stretches of a vocabulary, each with its best token.
pub const fn stretches(n_vocab: usize) -> usize {
    n_vocab.div_ceil(STRETCH)
}

/// `best` `[stretches]` = the best of each stretch of `logits`, with Gumbel noise unless greedy.
pub fn sample_best(
    recorder: &mut Recorder,
    plan: &mut Plan,
    sampling: &Buffer<SamplingParams>,
    step: &Buffer<Step>,
    logits: &Buffer<f32>,
    threshold: &Buffer<f32>,
    best: &Buffer<[u32; 2]>,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(logits.len()),
        &[sampling, step, logits, threshold, best],
        [Extent::Fixed(stretches(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
