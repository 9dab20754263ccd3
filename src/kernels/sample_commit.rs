use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_commit",
    bindings: &[("best", Access::Read), ("tokens", Access::Write), ("sampled", Access::Write)],
    variants: one_variant!("shared/best", "sample_commit"),
    example: &[Const::U32("N_STRETCHES", 126), Const::U32("N_SAMPLED", 4)],
};

/// `tokens[0]` = the best of `best`; `u32::MAX` where no logit is a number. It joins `sampled` at the end, and
/// the first there leaves.
pub fn sample_commit(
    recorder: &mut Recorder,
    plan: &mut Plan,
    best: &Buffer<[u32; 2]>,
    tokens: &Buffer<u32>,
    sampled: &Buffer<u32>,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &[
            Const::U32("N_STRETCHES", best.len() as u32),
            Const::U32("N_SAMPLED", sampled.len() as u32),
        ],
        &[best, tokens, sampled],
        [Extent::Fixed(1); 3],
    );
}
