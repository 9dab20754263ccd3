use super::{VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;
use crate::sampling::Sampling;

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
        ("logits", Access::Read),
        ("adjusted", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/penalties", "penalize"),
    example: || consts(128_256),
};

fn consts(n_vocab: usize) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::U32("IN_PROMPT", IN_PROMPT),
    ]
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
    pad: [u32; 3],
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
            pad: [0; 3],
        }
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

impl Recorder<'_> {
    /// `adjusted` `[n_vocab]` = `logits` with `biases` added, and lowered for tokens that the text
    /// has already. `counts` is [`Penalties::counts`]; the step's token is added if it comes after
    /// those counted there.
    pub fn penalize(
        &mut self,
        penalties: &Buffer<Penalties>,
        tokens: &Buffer<u32>,
        counts: &Buffer<u32>,
        biases: &Buffer<f32>,
        logits: &Buffer<f32>,
        adjusted: &Buffer<f32>,
    ) {
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[penalties, tokens, counts, biases, logits, adjusted],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
