use super::logprobs::Likeliest;
use super::logprobs::consts;
use super::selection::SamplingParams;
use super::workgroups::vocab_blocks;
use crate::gpu::{Access, Buffer, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "logprob_blocks",
    bindings: &[
        ("sampling", Access::Uniform),
        ("logits", Access::Read),
        ("weights", Access::Write),
        ("tops", Access::Write),
    ],
    variants: one_variant!("shared/sampling", "shared/best", "shared/sum", "logprob_blocks"),
    example: || consts(128_256),
};

impl Recorder<'_> {
    /// Finds the likeliest tokens of each vocabulary block in each row of `logits`
    /// `[rows, n_vocab]`, for `logprob_record`.
    pub fn logprob_blocks(
        &mut self,
        n_vocab: usize,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        rows: Extent,
        likeliest: &Likeliest,
    ) {
        let Likeliest { weights, tops } = likeliest;
        self.dispatch(
            &KERNEL,
            &consts(n_vocab),
            &[sampling, logits, weights, tops],
            [Extent::Fixed(vocab_blocks(n_vocab) as u32), rows, Extent::Fixed(1)],
        );
    }
}
