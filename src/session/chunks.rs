//! How many tokens of a prompt go to the GPU at a time.
//!
//! As many as the engine has room for, where they are done soon; on a slow card fewer: what a page draws
//! waits for them, an abort does, and some systems take a driver for hung that is busy for seconds.
//! The numbers are the same however the tokens are parted, see [`crate::engine::Engine::prefill`].

use std::iter::successors;

use web_time::Duration;

/// Time that a chunk is to take at most.
const MAX_TIME: Duration = Duration::from_millis(80);

/// Fewer tokens do not fill the kernels' tiles, and take little less time.
const LEAST: usize = 64;

/// The card's speed with this model, as far as it is known.
pub(super) struct Chunks {
    most: usize,
    /// Seconds that a token of the last chunk took.
    each: Option<f64>,
}

impl Chunks {
    /// `most` is what the engine has room for.
    pub(super) fn new(most: usize) -> Self {
        Self { most, each: None }
    }

    /// Tokens in the next chunk: few, until it is known how long they take.
    pub(super) fn tokens(&self) -> usize {
        let least = LEAST.min(self.most);
        let Some(each) = self.each else { return least };
        successors(Some(self.most), |tokens| Some(tokens / 2))
            .take_while(|&tokens| tokens > least)
            .find(|&tokens| each * tokens as f64 <= MAX_TIME.as_secs_f64())
            .unwrap_or(least)
    }

    /// Told what a chunk took.
    pub(super) fn took(&mut self, tokens: usize, time: Duration) {
        self.each = Some(time.as_secs_f64() / tokens as f64);
    }

    /// Told what a whole prompt took, to its first token. That is more than its chunks, the last of which
    /// are known no better: it counts where they were thought to take longer.
    pub(super) fn took_at_most(&mut self, tokens: usize, time: Duration) {
        let each = time.as_secs_f64() / tokens as f64;
        self.each = self.each.map(|known| known.min(each));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks of a long prompt on a card that takes so many microseconds for each, and so many for each
    /// token.
    fn sizes(most: usize, chunk: u64, token: u64) -> Vec<usize> {
        let mut chunks = Chunks::new(most);
        (0..6)
            .map(|_| {
                let tokens = chunks.tokens();
                chunks.took(tokens, Duration::from_micros(chunk + token * tokens as u64));
                tokens
            })
            .collect()
    }

    #[test]
    fn the_speed_of_a_card_makes_the_size() {
        // Some 10 000 tokens a second, 2 000, 900, 300 and 20.
        assert_eq!(sizes(512, 5000, 95), [64, 256, 512, 512, 512, 512]);
        assert_eq!(sizes(512, 5000, 500), [64, 128, 128, 128, 128, 128]);
        assert_eq!(sizes(512, 5000, 1100), [64, 64, 64, 64, 64, 64]);
        assert_eq!(sizes(512, 0, 3333), [64; 6]);
        assert_eq!(sizes(512, 0, 50_000), [64; 6]);
    }

    #[test]
    fn room_for_few_tokens_is_not_exceeded() {
        assert_eq!(sizes(300, 0, 100), [64, 300, 300, 300, 300, 300]);
        assert_eq!(sizes(300, 0, 600), [64, 75, 75, 75, 75, 75]);
        for most in [1, 7, 64] {
            assert_eq!(sizes(most, 10, 10), [most; 6]);
            assert_eq!(sizes(most, 10, 50_000), [most; 6]);
        }
    }

    #[test]
    fn a_prompt_of_two_chunks_tells_the_speed_too() {
        let mut chunks = Chunks::new(512);
        chunks.took_at_most(10, Duration::from_millis(3));
        assert_eq!(chunks.tokens(), 64);
        chunks.took(64, Duration::from_millis(30));
        assert_eq!(chunks.tokens(), 128);
        chunks.took_at_most(3, Duration::from_millis(3));
        assert_eq!(chunks.tokens(), 128);
        chunks.took_at_most(256, Duration::from_millis(25));
        assert_eq!(chunks.tokens(), 512);
    }

    #[test]
    fn a_chunk_that_was_held_up_is_forgotten() {
        let mut chunks = Chunks::new(512);
        chunks.took(512, Duration::from_millis(50));
        assert_eq!(chunks.tokens(), 512);
        chunks.took(512, Duration::from_secs(9));
        assert_eq!(chunks.tokens(), 64);
        chunks.took(64, Duration::from_millis(9));
        assert_eq!(chunks.tokens(), 512);
    }
}
