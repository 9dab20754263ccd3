//! The size of the chunks in which a prompt is computed.
//!
//! On a fast card a chunk has as many tokens as the engine has room for. On a slow card it has
//! fewer. Until a chunk is done, a page is not drawn and an abort is not answered. And some systems
//! assume that a driver hangs if it is busy for seconds. The size changes no number on the drivers
//! of the tests, see [`crate::compute::Compute::prefill`].
//!
//! In a deterministic session, all chunks end at multiples of one size. So the same step always
//! computes a token, however fast the card is, and however much of the sequence was there before.

use std::iter::successors;
use std::ops::Range;

use web_time::{Duration, Instant};

use crate::compute::{Compute, Pending};
use crate::error::Result;

/// The longest time of a chunk. In this time, an NVIDIA H200 computes 1024 tokens of a model of 8
/// billion weights. In chunks of 512 tokens it took 3 % longer, in chunks of 256 another 5 %.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The longest time of a chunk where all its tokens share an upload of weights, without the upload. Between two uploads a
/// card is busy for a shorter time.
const MAX_SHARED_TIME: Duration = Duration::from_secs(2);

/// The most chunks of the same size that share uploads. Only two of different sizes show how long an upload takes.
const MAX_ALIKE: usize = 7;

/// The fewest tokens of a chunk. Fewer tokens do not fill the kernels' tiles, so they take hardly
/// less time.
const MIN_TOKENS: usize = 64;

/// The most tokens of a chunk in a deterministic session. With larger chunks, a turn of a chat
/// computes more of the turn before again. With smaller ones, a card has too little to do.
const FIXED_TOKENS: usize = 128;

/// The measured speed of the card with this model, and the size of chunks that follows from it.
pub(super) struct Chunks {
    max_tokens: usize,
    /// Whether all chunks end at multiples of `max_tokens`, independent of the speed.
    fixed: bool,
    /// Tokens of the first chunk, whose speed is not known, and the longest time of any.
    first: usize,
    max_time: Duration,
    /// Whether weights are uploaded for each chunk.
    shared: bool,
    /// Seconds for each token of the last chunk. Where chunks share uploads, without the time of the upload, once two
    /// chunks of different sizes have shown it.
    each: Option<f64>,
    /// Tokens and seconds of the last chunk.
    last: Option<(usize, f64)>,
    /// Chunks of about its size since `each` was measured.
    alike: usize,
    /// When the last chunk was done.
    free: Option<Instant>,
}

impl Chunks {
    /// For an engine that has room for `max_tokens`.
    pub(super) fn new(max_tokens: usize) -> Self {
        let (first, max_time) = (MIN_TOKENS.min(max_tokens), MAX_TIME);
        Self {
            max_tokens,
            fixed: false,
            first,
            max_time,
            shared: false,
            each: None,
            last: None,
            alike: 0,
            free: None,
        }
    }

    /// For an engine that uploads weights for each chunk, the first of which has `first` tokens. The fewer they are,
    /// the longer is the work between two uploads.
    pub(super) fn shared(max_tokens: usize, first: usize) -> Self {
        let max_time = MAX_SHARED_TIME.mul_f64(first as f64 / max_tokens as f64).max(MAX_TIME);
        let first = first.max(MIN_TOKENS).min(max_tokens);
        Self { first, max_time, shared: true, ..Self::new(max_tokens) }
    }

    /// For a deterministic session.
    pub(super) fn fixed(max_tokens: usize) -> Self {
        Self { fixed: true, ..Self::new(max_tokens.min(FIXED_TOKENS)) }
    }

    /// The size at whose multiples all chunks end; `None` if they end anywhere.
    pub(super) fn grid(&self) -> Option<usize> {
        self.fixed.then_some(self.max_tokens)
    }

    /// Tokens in the next chunk. They are few until it is known how long they take.
    pub(super) fn tokens(&self) -> usize {
        let min = MIN_TOKENS.min(self.max_tokens);
        let Some(each) = self.each else { return self.first };
        successors(Some(self.max_tokens), |tokens| Some(tokens / 2))
            .take_while(|&tokens| tokens > min)
            .find(|&tokens| each * tokens as f64 <= self.max_time.as_secs_f64())
            // A chunk of another size measures again.
            .map_or(min, |tokens| if self.alike < MAX_ALIKE { tokens } else { tokens / 2 })
    }

    /// Where the computation of a sequence may begin if its first `filled` tokens are in the cache.
    pub(super) fn start(&self, filled: usize) -> usize {
        self.grid().map_or(filled, |grid| filled / grid * grid)
    }

    /// The next chunk of a sequence of `len` tokens. The tokens before `from` were in the cache,
    /// and those up to `pos` were submitted. Gives the number of tokens to submit now, and the positions of
    /// the whole chunk. A fast card computes the whole chunk at once. A slow card computes it in parts, and
    /// each part attends as the whole would.
    pub(super) fn next(&self, from: usize, pos: usize, len: usize) -> (usize, Range<usize>) {
        let from = if self.fixed { 0 } else { from };
        let begin = pos - (pos - from) % self.max_tokens;
        let all = begin..(begin + self.max_tokens).min(len);
        let left = all.end - pos;
        if self.fixed {
            return (left, all);
        }
        match self.tokens().min(left) {
            // A single token would be left, which other kernels would compute. So the next chunk
            // gets two.
            tokens if tokens > 1 && left == tokens + 1 => (tokens - 1, all),
            tokens => (tokens, all),
        }
    }

    /// Must be called when a chunk is done, with the time of its submission. The chunk began at
    /// that time, or when the chunk before it was done, if that was later.
    pub(super) fn done(&mut self, tokens: usize, submitted: Instant, now: Instant) {
        let began = self.free.map_or(submitted, |free| free.max(submitted));
        self.took(tokens, now - began);
        self.free = Some(now);
    }

    /// Like [`Chunks::done`], for a pass that had room for `most` tokens. One of few tokens takes longer for
    /// each, so it counts only if it shows that the card is faster than was thought.
    pub(super) fn pass_done(
        &mut self,
        (tokens, most): (usize, usize),
        submitted: Instant,
        now: Instant,
    ) {
        let known = self.each;
        self.done(tokens, submitted, now);
        if 2 * tokens < most {
            self.each = known.zip(self.each).map(|(known, each)| known.min(each));
        }
    }

    fn took(&mut self, tokens: usize, time: Duration) {
        let time = time.as_secs_f64();
        let before = self.last.replace((tokens, time)).filter(|_| self.shared);
        let each = time / tokens as f64;
        self.each = match (before, self.each) {
            // An upload takes as long for few tokens as for many.
            (Some((n, t)), _) if n.abs_diff(tokens) > n.max(tokens) / 4 => {
                self.alike = 0;
                let own = (time - t) / (tokens as f64 - n as f64);
                Some(if own > 0.0 { own } else { each })
            }
            (Some(_), Some(known)) => {
                self.alike += 1;
                Some(known.min(each))
            }
            _ => Some(each),
        };
    }

    /// Must be called after each prompt, with the time until its first token. That time is longer
    /// than the chunks took. But the last chunks are not measured by themselves, so it counts if it
    /// shows that the card is faster than was thought.
    pub(super) fn took_at_most(&mut self, tokens: usize, time: Duration) {
        let each = time.as_secs_f64() / tokens as f64;
        self.each = self.each.map(|known| known.min(each));
    }
}

/// A chunk of a prompt in flight.
pub(super) struct Chunk {
    tokens: usize,
    done: Pending<()>,
    pub(super) submitted: Instant,
}

impl Chunk {
    /// Submits `ids`; the arguments are those of [`Compute::prefill`].
    pub(super) fn submit(engine: &dyn Compute, ids: &[u32], pos: usize, all: Range<usize>) -> Self {
        let done = engine.prefill(ids, pos, all);
        Self { tokens: ids.len(), done, submitted: Instant::now() }
    }

    /// Waits until it is done, and tells `chunks` how long it took.
    pub(super) async fn take(self, chunks: &mut Chunks) -> Result<()> {
        self.done.take().await?;
        chunks.done(self.tokens, self.submitted, Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::packing::Packing;
    use super::*;
    use crate::compute::MAX_SPANS;

    /// The sizes of the chunks of a long prompt, on a card that takes `chunk` microseconds for each
    /// chunk and `token` microseconds for each token.
    fn sizes(max_tokens: usize, chunk: u64, token: u64) -> Vec<usize> {
        sizes_of(Chunks::new(max_tokens), chunk, token)
    }

    fn sizes_of(mut chunks: Chunks, chunk: u64, token: u64) -> Vec<usize> {
        (0..6)
            .map(|_| {
                let tokens = chunks.tokens();
                chunks.took(tokens, Duration::from_micros(chunk + token * tokens as u64));
                tokens
            })
            .collect()
    }

    #[test]
    fn the_speed_of_a_card_decides_the_size() {
        // These cards compute about 10 000 tokens a second, 2 800, 1 100, 500, 300 and 20.
        assert_eq!(sizes(512, 5000, 95), [64, 512, 512, 512, 512, 512]);
        assert_eq!(sizes(512, 5000, 340), [64, 256, 512, 512, 512, 512]);
        assert_eq!(sizes(512, 5000, 900), [64, 128, 128, 128, 128, 128]);
        assert_eq!(sizes(512, 5000, 1900), [64, 64, 64, 64, 64, 64]);
        assert_eq!(sizes(512, 0, 3333), [64; 6]);
        assert_eq!(sizes(512, 0, 50_000), [64; 6]);
    }

    #[test]
    fn tokens_that_share_an_upload_are_many() {
        // Uploads of half a second and of 1.5 seconds; the last card takes 5 seconds for its own part.
        let sizes = |upload, token| sizes_of(Chunks::shared(1024, 1024), upload, token);
        assert_eq!(sizes(500_000, 200), [1024; 6]);
        assert_eq!(sizes(1_500_000, 200), [1024; 6]);
        assert_eq!(sizes(500_000, 5_000), [1024, 256, 256, 256, 256, 256]);
        // One of two and a half seconds: smaller chunks would not help.
        assert_eq!(sizes(2_500_000, 200), [1024, 512, 1024, 1024, 1024, 1024]);
        // Few layers are uploaded.
        let few = sizes_of(Chunks::shared(1024, 100), 50_000, 500);
        assert_eq!(few, [100, 128, 128, 128, 128, 128]);
    }

    #[test]
    fn a_slow_first_upload_is_soon_forgotten() {
        let mut chunks = Chunks::shared(1024, 1024);
        chunks.took(1024, Duration::from_secs(12));
        let mut all = Vec::new();
        for _ in 0..12 {
            let tokens = chunks.tokens();
            chunks.took(tokens, Duration::from_millis(1200 + tokens as u64 / 10));
            all.push(tokens);
        }
        assert_eq!(all[0], 128);
        assert_eq!(all.last(), Some(&1024));
    }

    #[test]
    fn fixed_chunks_end_at_multiples_whatever_was_there() {
        let mut chunks = Chunks::fixed(1024);
        assert_eq!(chunks.grid(), Some(128));
        chunks.took(128, Duration::from_secs(9));
        assert_eq!(chunks.next(0, 0, 300), (128, 0..128));
        assert_eq!(chunks.next(0, 256, 300), (44, 256..300));
        assert_eq!(chunks.next(100, 100, 300), (28, 0..128));
        assert_eq!(chunks.next(0, 128, 129), (1, 128..129));
        assert_eq!(Chunks::fixed(64).next(0, 0, 300), (64, 0..64));
        assert_eq!(Chunks::new(64).grid(), None);
    }

    #[test]
    fn room_for_few_tokens_is_not_exceeded() {
        assert_eq!(sizes(300, 0, 100), [64, 300, 300, 300, 300, 300]);
        assert_eq!(sizes(300, 0, 900), [64, 150, 150, 150, 150, 150]);
        for room in [1, 7, 64] {
            assert_eq!(sizes(room, 10, 10), [room; 6]);
            assert_eq!(sizes(room, 10, 50_000), [room; 6]);
        }
    }

    #[test]
    fn the_time_in_which_a_chunk_waits_for_another_does_not_count() {
        let mut chunks = Chunks::new(512);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        chunks.done(64, at(0), at(64));
        assert_eq!(chunks.tokens(), 128);
        chunks.done(64, at(1), at(80));
        assert_eq!(chunks.tokens(), 512);
        // The time in which there was no chunk does not count either.
        chunks.done(64, at(1000), at(1016));
        assert_eq!(chunks.tokens(), 512);
    }

    #[test]
    fn passes_of_short_texts_grow() {
        // A card that computes 10 000 tokens a second.
        let time = |tokens: usize| Duration::from_micros(100 * tokens as u64);
        for len in [1, 12, 33, 40, 60, 64] {
            let (mut chunks, mut now) = (Chunks::new(1024), Instant::now());
            let mut packing = Packing::new(std::iter::repeat_n(len, 1024), 1024);
            let mut passes = 0;
            while let Some(pass) = packing.next(chunks.tokens()) {
                let tokens = pass.iter().map(|placed| placed.len).sum();
                chunks.pass_done((tokens, chunks.tokens()), now, now + time(tokens));
                now += time(tokens);
                passes += 1;
            }
            // The first one has at most 64 tokens.
            let spans = MAX_SPANS.min(1024 / len);
            assert!(passes <= 1 + 1024_usize.div_ceil(spans), "{len}: {passes}");
        }
    }

    #[test]
    fn a_pass_of_few_tokens_only_shows_that_a_card_is_fast() {
        let mut chunks = Chunks::new(512);
        let mut now = Instant::now();
        let mut pass = |chunks: &mut Chunks, tokens, ms| {
            let begun = now;
            now += Duration::from_millis(ms);
            chunks.pass_done((tokens, chunks.tokens()), begun, now);
            chunks.tokens()
        };
        assert_eq!(pass(&mut chunks, 3, 3), 64);
        assert_eq!(pass(&mut chunks, 40, 40), 128);
        assert_eq!(pass(&mut chunks, 3, 9), 128);
        assert_eq!(pass(&mut chunks, 60, 6), 512);
        assert_eq!(pass(&mut chunks, 1, 100), 512);
        // The time in which it ran is not that of the pass behind it.
        let behind = Instant::now();
        chunks.pass_done((1, 512), behind, behind + Duration::from_secs(2));
        chunks.pass_done((512, 512), behind, behind + Duration::from_millis(2051));
        assert_eq!(chunks.tokens(), 512);
    }

    #[test]
    fn the_time_of_a_short_prompt_counts_too() {
        let mut chunks = Chunks::new(512);
        chunks.took_at_most(10, Duration::from_millis(3));
        assert_eq!(chunks.tokens(), 64);
        chunks.took(64, Duration::from_millis(64));
        assert_eq!(chunks.tokens(), 128);
        chunks.took_at_most(3, Duration::from_millis(3));
        assert_eq!(chunks.tokens(), 128);
        chunks.took_at_most(256, Duration::from_millis(25));
        assert_eq!(chunks.tokens(), 512);
    }

    #[test]
    fn one_slow_chunk_is_soon_forgotten() {
        let mut chunks = Chunks::new(512);
        chunks.took(512, Duration::from_millis(50));
        assert_eq!(chunks.tokens(), 512);
        chunks.took(512, Duration::from_secs(9));
        assert_eq!(chunks.tokens(), 64);
        chunks.took(64, Duration::from_millis(9));
        assert_eq!(chunks.tokens(), 512);
    }
}
