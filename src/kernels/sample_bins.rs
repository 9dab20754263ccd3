use super::selection::consts;
use super::{SamplingParams, Selection, vocab_blocks};
use crate::gpu::{Access, Buffer, Extent, Kernel, Recorder};
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
        "sample_bins"
    ),
    example: || consts(128_256),
};

impl Recorder<'_> {
    /// Sorts the tokens of `logits` `[n_vocab]` into bins by their distance from the greatest, which
    /// `sample_max` has found.
    pub fn sample_bins(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        selection: &Selection,
    ) {
        let Selection { greatest, bins, .. } = selection;
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[sampling, logits, greatest, bins],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
