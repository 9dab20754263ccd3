use super::logprobs::consts;
use super::logprobs::{Likeliest, Record};
use super::selection::SamplingParams;
use crate::gpu::{Access, Buffer, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "logprob_record",
    bindings: &[
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("logits", Access::Read),
        ("weights", Access::Read),
        ("tops", Access::Read),
        ("records", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/sampling",
        "shared/best",
        "shared/sum",
        "logprob_record"
    ),
    example: || consts(128_256),
};

impl Recorder<'_> {
    /// Writes a [`Record`] of each row of `logits` `[rows, n_vocab]`. The rows come after the
    /// step's last tokens, and `tokens` has the tokens that follow them. `records` `[N_RECORDS]`
    /// are those of one sequence. `logprob_blocks` must have run.
    pub fn logprob_record(
        &mut self,
        n_vocab: usize,
        sampling: &Buffer<SamplingParams>,
        tokens: &Buffer<u32>,
        (logits, rows): (&Buffer<f32>, Extent),
        likeliest: &Likeliest,
        records: &Buffer<Record>,
    ) {
        let Likeliest { weights, tops } = likeliest;
        self.dispatch(
            &KERNEL,
            &consts(n_vocab),
            &[sampling, tokens, logits, weights, tops, records],
            [rows, Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
