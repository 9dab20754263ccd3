use super::selection::consts;
use super::workgroups::vocab_blocks;
use crate::gpu::{Access, Buffer, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_max",
    bindings: &[("logits", Access::Read), ("greatest", Access::Write)],
    variants: one_variant!("shared/keys", "sample_max"),
    example: || consts(128_256),
};

impl Recorder<'_> {
    /// `greatest` `[vocab_blocks]` = the key of the greatest of `logits` `[n_vocab]` in each
    /// vocabulary block.
    pub fn sample_max(&mut self, logits: &Buffer<f32>, greatest: &Buffer<u32>) {
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[logits, greatest],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
