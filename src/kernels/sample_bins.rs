use super::selection;
use super::selection::{SamplingParams, Selection};
use super::workgroups::vocab_blocks;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_bins",
    bindings: &[
        ("sampling", Access::Uniform),
        ("logits", Access::Read),
        ("greatest", Access::Read),
        ("bins", Access::Write),
    ],
    variants: one_variant!(
        "shared/sampling",
        "shared/keys",
        "shared/selection",
        "shared/greatest",
        "shared/missing",
        "sample_bins"
    ),
    example: || consts(128_256, vocab_blocks(128_256)),
};

fn consts(n_vocab: usize, n_greatest: usize) -> Vec<Const> {
    [selection::consts(n_vocab), vec![Const::size("N_GREATEST", n_greatest)]].concat()
}

impl Recorder<'_> {
    /// Sorts the tokens of `logits` `[n_vocab]` into bins by their distance from the greatest
    /// logit. The greatest of `greatest` is its key. Every `sample_decide` leaves the bins empty.
    pub fn sample_bins(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        greatest: &Buffer<u32>,
        selection: &Selection,
    ) {
        let Selection { bins, .. } = selection;
        self.dispatch(
            &KERNEL,
            &consts(logits.len(), greatest.len()),
            &[sampling, logits, greatest, bins],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
