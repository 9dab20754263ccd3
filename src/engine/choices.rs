//! The greedy choices after each token of a draft pass, on their way from the GPU.

use super::MAX_BATCH_STEPS;
use super::state::SLOT_WORDS;
use crate::error::Result;
use crate::gpu::{Gpu, Readback};
use crate::kernels::NO_TOKEN;

/// What [`Engine::decode_and_choose`](super::Engine::decode_and_choose) chose. Several may be in
/// flight.
pub struct Choices {
    /// `[n_tokens, vocab_blocks]`: the best token of each vocabulary block, as its logit's bits and
    /// its id.
    pub(super) best: Readback<[u32; 2]>,
    pub(super) vocab_blocks: usize,
}

impl Choices {
    /// Waits for the token after each: [`NO_TOKEN`] where no logit is a number.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self, gpu: &Gpu) -> Result<Vec<u32>> {
        let best = self.best.take(gpu).await?;
        Ok(best.chunks(self.vocab_blocks).map(best_of).collect())
    }
}

/// What [`Engine::decode_batch`](super::Engine::decode_batch) chose. Several may be in flight.
pub struct Sampled {
    /// The last tokens of each slot.
    pub(super) all: Readback<u32>,
    /// The slots of the texts.
    pub(super) slots: Vec<usize>,
    /// Steps.
    pub(super) n: usize,
}

impl Sampled {
    /// Waits for the tokens of each text, one for each step: [`NO_TOKEN`] where no logit is a number.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self, gpu: &Gpu) -> Result<Vec<Vec<u32>>> {
        let all = self.all.take(gpu).await?;
        let of = |slot: &usize| {
            let end = slot * SLOT_WORDS + MAX_BATCH_STEPS;
            all[end - self.n..end].to_vec()
        };
        Ok(self.slots.iter().map(of).collect())
    }
}

/// The greatest of the blocks' best, and the lowest id among equals.
fn best_of(blocks: &[[u32; 2]]) -> u32 {
    let value = |[bits, _]: [u32; 2]| f32::from_bits(bits);
    let numbers = blocks.iter().copied().filter(|[_, id]| *id != NO_TOKEN);
    let best = numbers.reduce(|a, b| if value(b) > value(a) { b } else { a });
    best.map_or(NO_TOKEN, |[_, id]| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_blocks_is_the_lowest_id_among_equals() {
        let best = |of: &[(f32, u32)]| {
            let of: Vec<_> = of.iter().map(|(value, id)| [value.to_bits(), *id]).collect();
            best_of(&of)
        };
        let none = (0.0, NO_TOKEN);
        assert_eq!(best(&[(-2.0, 7), (-1.0, 1030), (-1.0, 2050)]), 1030);
        assert_eq!(best(&[none, (f32::NEG_INFINITY, 1100), none]), 1100);
        assert_eq!(best(&[none, (-0.5, 1100), (0.5, 2100)]), 2100);
        assert_eq!(best(&[none, none]), NO_TOKEN);
    }
}
