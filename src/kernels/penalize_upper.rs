use super::gemv_upper::Approximation;
use super::penalize;
use super::penalize::Adjustments;
use super::selection::SamplingParams;
use super::workgroups::vocab_blocks;
use crate::compute::NO_TOKEN;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Words of an approximate logit, with the values that change it; `struct Adjusted` in the shader.
pub const ADJUSTED_WORDS: usize = 3;

pub(super) const KERNEL: Kernel = Kernel {
    name: "penalize_upper",
    bindings: &[
        ("sampling", Access::Uniform),
        ("penalties", Access::Uniform),
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("counts", Access::Write),
        ("biases", Access::Read),
        ("masks", Access::Read),
        ("approx", Access::Read),
        ("error", Access::Read),
        ("adjusted", Access::Write),
        ("leads", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/sampling",
        "shared/penalties",
        "shared/biased",
        "shared/counted",
        "shared/noise",
        "shared/best",
        "penalize_upper"
    ),
    example: || consts(128_256),
};

fn consts(n_vocab: usize) -> Vec<Const> {
    [penalize::consts(n_vocab), vec![Const::U32("NO_TOKEN", NO_TOKEN)]].concat()
}

impl Recorder<'_> {
    /// Like [`Recorder::penalize`], for the approximate logits of `from`. `to.approx`
    /// `[n_vocab, ADJUSTED_WORDS]` gets their ranks, with the values that change a logit.
    /// `to.leads` `[vocab_blocks]` gets the greatest rank of each block.
    pub fn penalize_upper(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        by: Adjustments<'_>,
        tokens: &Buffer<u32>,
        from: &Approximation,
        to: &Approximation,
    ) {
        let Adjustments { penalties, counts, biases, masks } = by;
        let n_vocab = biases.len();
        let Approximation { error, approx, .. } = from;
        self.dispatch(
            &KERNEL,
            &consts(n_vocab),
            &[
                sampling, penalties, tokens, counts, biases, masks, approx, error, &to.approx,
                &to.leads,
            ],
            [Extent::Fixed(vocab_blocks(n_vocab) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
