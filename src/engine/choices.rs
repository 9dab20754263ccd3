//! The greedy choices after each token of a step of few, on their way from the GPU.

use crate::error::Result;
use crate::gpu::{Gpu, Readback};

/// What [`Engine::decode_and_choose`](super::Engine::decode_and_choose) chose. Several may be under way.
pub struct Choices {
    /// `[n_tokens, stretches]`: the best of each stretch of the vocabulary, the bits of its logit and its id.
    pub(super) best: Readback<[u32; 2]>,
    pub(super) stretches: usize,
}

impl Choices {
    /// Waits for the token after each; no id of the vocabulary where no logit is a number.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self, gpu: &Gpu) -> Result<Vec<u32>> {
        let best = self.best.take(gpu).await?;
        Ok(best.chunks(self.stretches).map(best_of).collect())
    }
}

/// The greatest of the stretches' best, the lowest id among equals.
fn best_of(stretches: &[[u32; 2]]) -> u32 {
    let value = |[bits, _]: [u32; 2]| f32::from_bits(bits);
    let numbers = stretches.iter().copied().filter(|[_, id]| *id != u32::MAX);
    let best = numbers.reduce(|a, b| if value(b) > value(a) { b } else { a });
    best.map_or(u32::MAX, |[_, id]| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_stretches_is_the_lowest_id_among_equals() {
        let best = |of: &[(f32, u32)]| {
            let of: Vec<_> = of.iter().map(|(value, id)| [value.to_bits(), *id]).collect();
            best_of(&of)
        };
        let none = (0.0, u32::MAX);
        assert_eq!(best(&[(-2.0, 7), (-1.0, 1030), (-1.0, 2050)]), 1030);
        assert_eq!(best(&[none, (f32::NEG_INFINITY, 1100), none]), 1100);
        assert_eq!(best(&[none, (-0.5, 1100), (0.5, 2100)]), 2100);
        assert_eq!(best(&[none, none]), u32::MAX);
    }
}
