use super::selection::SamplingParams;
use super::workgroups::{VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::compute::NO_TOKEN;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_best",
    bindings: &[
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("logits", Access::Read),
        ("best", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/sampling",
        "shared/noise",
        "shared/best",
        "sample_best"
    ),
    example: || consts(128_256, true),
};

fn consts(n_vocab: usize, ranked: bool) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::U32("NO_TOKEN", NO_TOKEN),
        Const::Bool("RANKED", ranked),
    ]
}

impl Recorder<'_> {
    /// `best` `[vocab_blocks]` = the best token of each block of `logits`. If `ranked`, Gumbel
    /// noise is added unless the choice is greedy. A CPU computes the noise even if it is not used.
    pub fn sample_best(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        best: &Buffer<[u32; 2]>,
        ranked: bool,
    ) {
        self.dispatch(
            &KERNEL,
            &consts(logits.len(), ranked),
            &[sampling, logits, best],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
