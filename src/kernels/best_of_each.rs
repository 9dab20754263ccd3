use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "best_of_each",
    bindings: &[("logits", Access::Read), ("chosen", Access::Write)],
    variants: one_variant!("shared/best", "best_of_each"),
    example: &consts(128_256),
};

const fn consts(n_vocab: usize) -> [Const; 2] {
    [Const::U32("WORKGROUP", WORKGROUP), Const::U32("N_VOCAB", n_vocab as u32)]
}

/// `chosen` `[n_tokens]` = the greatest of each token's `logits` `[n_tokens, n_vocab]`, the lowest id
/// among equals; no id of the vocabulary where none is a number.
pub fn best_of_each(
    recorder: &mut Recorder,
    plan: &mut Plan,
    n_vocab: usize,
    logits: &Buffer<f32>,
    chosen: &Buffer<u32>,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(n_vocab),
        &[logits, chosen],
        [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
