use super::penalize;
use super::penalize::Adjustments;
use super::workgroups::vocab_blocks;
use crate::compute::NO_TOKEN;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "best_of_each",
    bindings: &[
        ("penalties", Access::Uniform),
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("counts", Access::Read),
        ("biases", Access::Read),
        ("masks", Access::Read),
        ("logits", Access::Read),
        ("best", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/penalties",
        "shared/biased",
        "shared/best",
        "best_of_each"
    ),
    example: || consts(128_256),
};

/// The best token of a vocabulary block; `struct Best` in the shader.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct BestOfBlock {
    /// Its logit, with its bias and penalties.
    pub value: f32,
    /// Its id; [`NO_TOKEN`] if no logit is a number.
    pub id: u32,
    /// The model's own logit.
    pub logit: f32,
}

fn consts(n_vocab: usize) -> Vec<Const> {
    [penalize::consts(n_vocab), vec![Const::U32("NO_TOKEN", NO_TOKEN)]].concat()
}

impl Recorder<'_> {
    /// `best` `[n_tokens, vocab_blocks]` = the best token of each vocabulary block, for each token
    /// of a draft pass. It has the greatest of the `logits` `[n_tokens, n_vocab]` with their biases
    /// and penalties. A logit is -inf if the token's mask has no bit for it. Of equal ones, the
    /// lowest id is the best.
    ///
    /// `by.counts` are those of the sequence before the pass. They do not include the
    /// [`Step::uncertain`](crate::gpu::Step::uncertain) tokens, which come right before those of
    /// the pass in `tokens`.
    pub fn best_of_each(
        &mut self,
        by: Adjustments<'_>,
        tokens: &Buffer<u32>,
        logits: &Buffer<f32>,
        best: &Buffer<BestOfBlock>,
    ) {
        let Adjustments { penalties, counts, biases, masks } = by;
        let n_vocab = biases.len();
        self.dispatch(
            &KERNEL,
            &consts(n_vocab),
            &[penalties, tokens, counts, biases, masks, logits, best],
            [Extent::Fixed(vocab_blocks(n_vocab) as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
