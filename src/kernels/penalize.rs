use super::workgroups::{VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;
use crate::sampling::{Mask, Sampling};

/// The bit for a token of the prompt, in the token's count.
pub(super) const IN_PROMPT: u32 = 1 << 31;

pub(super) const KERNEL: Kernel = Kernel {
    name: "penalize",
    bindings: &[
        ("penalties", Access::Uniform),
        ("step", Access::Step),
        ("tokens", Access::Read),
        ("counts", Access::Write),
        ("biases", Access::Read),
        ("masks", Access::Read),
        ("logits", Access::Read),
        ("adjusted", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/penalties",
        "shared/biased",
        "shared/counted",
        "penalize"
    ),
    example: || consts(128_256),
};

pub(super) fn consts(n_vocab: usize) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::U32("IN_PROMPT", IN_PROMPT),
        Const::size("MASK_WORDS", Mask::n_words(n_vocab)),
    ]
}

/// The largest factor by which the difference of two logits can grow. One of them may be divided by
/// `repeat_penalty`, or multiplied by it.
pub(super) fn growth(sampling: &Sampling) -> f32 {
    sampling.repeat_penalty.max(sampling.repeat_penalty.recip())
}

/// The penalties in the form that kernels read; `struct Penalties` in shared/penalties.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Penalties {
    repeat: f32,
    inverse_repeat: f32,
    presence: f32,
    frequency: f32,
    n_counted: u32,
    growth: f32,
    masked: u32,
    forbidden: f32,
}

impl Penalties {
    /// The penalties of `sampling`. The caller has counted the first `n_counted` tokens of the
    /// sequence.
    pub fn new(sampling: &Sampling, n_counted: usize) -> Self {
        Self {
            repeat: sampling.repeat_penalty,
            inverse_repeat: sampling.repeat_penalty.recip(),
            presence: sampling.presence_penalty,
            frequency: sampling.frequency_penalty,
            n_counted: n_counted as u32,
            growth: growth(sampling),
            masked: 0,
            forbidden: f32::NEG_INFINITY,
        }
    }

    /// The same penalties, with or without a mask.
    pub fn masked(self, masked: bool) -> Self {
        Self { masked: masked.into(), ..self }
    }

    /// For each token of a vocabulary, how often the output has it, and whether the prompt has it.
    /// It is in the form that the kernel reads. Ids outside of the vocabulary are left out.
    pub fn counts(n_vocab: usize, prompt: &[u32], output: &[u32]) -> Vec<u32> {
        let mut counts = vec![0; n_vocab];
        for &id in output {
            if let Some(count) = counts.get_mut(id as usize) {
                *count += 1;
            }
        }
        for &id in prompt {
            if let Some(count) = counts.get_mut(id as usize) {
                *count |= IN_PROMPT;
            }
        }
        counts
    }

    /// The word of one token in [`Penalties::counts`].
    pub fn count(id: u32, prompt: &[u32], output: &[u32]) -> u32 {
        let times = output.iter().filter(|other| **other == id).count() as u32;
        times | if prompt.contains(&id) { IN_PROMPT } else { 0 }
    }
}

/// The buffers that change the logits of a sequence's tokens.
#[derive(Clone, Copy)]
pub struct Adjustments<'a> {
    /// The penalties.
    pub penalties: &'a Buffer<Penalties>,
    /// [`Penalties::counts`] `[n_vocab]`.
    pub counts: &'a Buffer<u32>,
    /// The biases `[n_vocab]`, which are added.
    pub biases: &'a Buffer<f32>,
    /// The words of one mask or several, used if the penalties are [masked](Penalties::masked). A
    /// step uses the first mask. A draft pass uses one for each token.
    pub masks: &'a Buffer<u32>,
}

impl Recorder<'_> {
    /// `adjusted` `[n_vocab]` = `logits` with their biases, and with the penalties of tokens that
    /// the sequence has already. It is -inf if the mask has no bit for a token. The step's token is
    /// the first of `tokens`. It is counted, unless the caller has counted it before.
    pub fn penalize(
        &mut self,
        by: Adjustments<'_>,
        tokens: &Buffer<u32>,
        logits: &Buffer<f32>,
        adjusted: &Buffer<f32>,
    ) {
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[by.penalties, tokens, by.counts, by.biases, by.masks, logits, adjusted],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
