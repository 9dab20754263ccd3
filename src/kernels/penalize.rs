use super::workgroups::{VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;
use crate::sampling::{Mask, Sampling};

/// In the count of a token that the prompt has.
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

/// The largest factor of the difference of two logits of a token: one may be divided by `repeat_penalty`,
/// or multiplied with it.
pub(super) fn growth(sampling: &Sampling) -> f32 {
    sampling.repeat_penalty.max(sampling.repeat_penalty.recip())
}

/// The penalties as kernels read them; `struct Penalties` in shared/penalties.wgsl.
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
    /// Those of `sampling`. The caller has counted the first `n_counted` tokens of the text.
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

    /// The same, with or without a mask.
    pub fn masked(self, masked: bool) -> Self {
        Self { masked: masked.into(), ..self }
    }

    /// How often the output has each token of a vocabulary, and whether the prompt has it, as the
    /// kernel reads it. Other ids than those of the vocabulary are left out.
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

    /// One of [`Penalties::counts`].
    pub fn count(id: u32, prompt: &[u32], output: &[u32]) -> u32 {
        let times = output.iter().filter(|other| **other == id).count() as u32;
        times | if prompt.contains(&id) { IN_PROMPT } else { 0 }
    }
}

/// What changes the logits of a text's tokens.
#[derive(Clone, Copy)]
pub struct Adjustments<'a> {
    /// The penalties.
    pub penalties: &'a Buffer<Penalties>,
    /// [`Penalties::counts`] `[n_vocab]`.
    pub counts: &'a Buffer<u32>,
    /// What is added `[n_vocab]`.
    pub biases: &'a Buffer<f32>,
    /// The words of one mask or several, which matter where the penalties are
    /// [masked](Penalties::masked): the first one for a step, one for each token of a draft pass.
    pub masks: &'a Buffer<u32>,
}

impl Recorder<'_> {
    /// `adjusted` `[n_vocab]` = `logits` with their biases, -inf where the mask has no bit, and lowered for tokens that the text has
    /// already. The step's token, the first of `tokens`, is counted if it comes after those that the
    /// caller has counted.
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
