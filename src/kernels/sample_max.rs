use super::selection::consts;
use super::{Selection, vocab_blocks};
use crate::gpu::{Access, Buffer, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_max",
    bindings: &[
        ("logits", Access::Read),
        ("greatest", Access::Write),
        ("bins", Access::Write),
        ("n_undecided", Access::Write),
    ],
    variants: one_variant!("shared/keys", "sample_max"),
    example: || consts(128_256),
};

impl Recorder<'_> {
    /// Finds the greatest of `logits` `[n_vocab]` in each vocabulary block, and empties `selection`.
    pub fn sample_max(&mut self, logits: &Buffer<f32>, selection: &Selection) {
        let Selection { greatest, bins, n_undecided, .. } = selection;
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[logits, greatest, bins, n_undecided],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
