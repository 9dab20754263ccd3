use super::WORKGROUP;
use super::sample_best::{STRETCH, stretches};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "best_of_each",
    bindings: &[("logits", Access::Read), ("best", Access::Write)],
    variants: one_variant!("shared/best", "best_of_each"),
    example: &consts(128_256),
};

const fn consts(n_vocab: usize) -> [Const; 3] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("N_VOCAB", n_vocab as u32),
        Const::U32("STRETCH", STRETCH as u32),
    ]
}

/// `best` `[n_tokens, stretches(n_vocab)]` = of each stretch of each token's `logits` `[n_tokens, n_vocab]` the
/// greatest one's bits and its id, the lowest among equals; no id of the vocabulary where none is a number.
pub fn best_of_each(
    recorder: &mut Recorder,
    plan: &mut Plan,
    n_vocab: usize,
    logits: &Buffer<f32>,
    best: &Buffer<[u32; 2]>,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(n_vocab),
        &[logits, best],
        [Extent::Fixed(stretches(n_vocab) as u32), Extent::Tokens(1), Extent::Fixed(1)],
    );
}
