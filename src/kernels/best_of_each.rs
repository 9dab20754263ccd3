use super::{NO_TOKEN, VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "best_of_each",
    bindings: &[("logits", Access::Read), ("biases", Access::Read), ("best", Access::Write)],
    variants: one_variant!("shared/best", "best_of_each"),
    example: || consts(128_256),
};

fn consts(n_vocab: usize) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::U32("NO_TOKEN", NO_TOKEN),
    ]
}

impl Recorder<'_> {
    /// `best` `[n_tokens, vocab_blocks]` = for each token and each vocabulary block the token with
    /// the greatest sum of `logits` `[n_tokens, n_vocab]` and `biases` `[n_vocab]`: the bits of its
    /// logit, and its id, the lowest among equals. [`NO_TOKEN`] where no logit is a number.
    pub fn best_of_each(
        &mut self,
        logits: &Buffer<f32>,
        biases: &Buffer<f32>,
        best: &Buffer<[u32; 2]>,
    ) {
        let n_vocab = biases.len();
        self.dispatch(
            &KERNEL,
            &consts(n_vocab),
            &[logits, biases, best],
            [Extent::Fixed(vocab_blocks(n_vocab) as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
