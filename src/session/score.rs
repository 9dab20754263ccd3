//! Finds out how likely texts are after a prefix that they share.

use web_time::Instant;

use super::caches::{CacheId, Wanted};
use super::loaded::Session;
use super::room::MAX_SHARED;
use crate::compute::{MAX_SPANS, Span};
use crate::error::{Error, Result};

impl Session {
    /// The log-probability, by the model alone, of each token of `texts`, after `prefix` and the
    /// tokens before it. The prefix is computed once, and passes hold tokens of several texts.
    ///
    /// Errors: `bad-option` (an empty prefix, ids out of range), `context-full`, `device-lost`.
    pub async fn score(&mut self, prefix: &[u32], texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>> {
        self.check_prompt(prefix)?;
        let all: Vec<Vec<u32>> = texts.iter().map(|text| [prefix, text].concat()).collect();
        all.iter().try_for_each(|ids| self.check_prompt(ids))?;
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let scored = self.score_all(prefix.len() - 1, &all).await;
        self.caches.release_all();
        scored
    }

    async fn score_all(&mut self, shared: usize, all: &[Vec<u32>]) -> Result<Vec<Vec<f32>>> {
        let mut scores = Vec::new();
        while scores.len() < all.len() {
            let mut placed = Vec::new();
            for ids in all[scores.len()..].iter().take(MAX_SPANS) {
                let wanted = Wanted { least: ids.len(), most: ids.len() };
                let Some(id) = self.place(ids, wanted, MAX_SHARED).await? else { break };
                placed.push((id, ids));
            }
            if placed.is_empty() {
                return Err(Error::Internal("a sequence has no room in the KV cache".into()));
            }
            self.fill(shared, &placed).await?;
            scores.extend(self.score_placed(shared, &placed).await?);
            placed.iter().for_each(|&(id, _)| self.caches.release(id));
        }
        Ok(scores)
    }

    /// Computes the first `shared` tokens of one sequence, and copies them to the others.
    async fn fill(&mut self, shared: usize, placed: &[(CacheId, &Vec<u32>)]) -> Result<()> {
        let mut first = None;
        for &(id, _) in placed {
            let sequence = self.caches.running(id)?;
            let at = sequence.first();
            // Passes compute the other tokens.
            sequence.prompt = shared;
            sequence.filled = self.chunks.start(sequence.filled.min(shared));
            match first {
                Some(first) => self.engine.copy_cache(first, at, shared),
                None => {
                    self.compute_up_to(id, shared).await?;
                    first = Some(at);
                }
            }
            self.caches.running(id)?.filled = shared;
        }
        Ok(())
    }

    /// Computes the other tokens.
    async fn score_placed(
        &mut self,
        shared: usize,
        placed: &[(CacheId, &Vec<u32>)],
    ) -> Result<Vec<Vec<f32>>> {
        let mut texts = Vec::new();
        for &(id, ids) in placed {
            let first = self.caches.running(id)?.first();
            texts.push(Unscored { first, pos: shared, ids: &ids[shared..] });
        }
        let (scores, _) = self.score_spans(texts).await?;
        for &(id, ids) in placed {
            // The last token was not computed, because no token after it is scored.
            self.caches.running(id)?.filled = ids.len() - 1;
        }
        Ok(scores)
    }

    /// The most tokens of a pass. It takes no longer than a chunk of a prompt. In a deterministic session
    /// every pass has the bits of single steps, because how tokens are divided depends on the room in
    /// the cache.
    pub(super) fn pass_tokens(&self) -> usize {
        let slots = self.traits.slots.min(self.traits.pass);
        match self.chunks.grid() {
            Some(_) => slots,
            None => self.chunks.tokens().clamp(slots, self.traits.pass),
        }
    }

    /// The log-probability of each token of `texts` but the first, each after those before it, in
    /// passes that are as full as possible. Gives the number of passes too.
    pub(super) async fn score_spans(
        &self,
        mut texts: Vec<Unscored<'_>>,
    ) -> Result<(Vec<Vec<f32>>, usize)> {
        let mut scores = vec![Vec::new(); texts.len()];
        let mut passes = 0;
        loop {
            let (spans, of) = next_pass(&mut texts, self.pass_tokens());
            if spans.is_empty() {
                return Ok((scores, passes));
            }
            for (n, found) in of.into_iter().zip(self.engine.score(&spans).take().await?) {
                scores[n].extend(found);
            }
            passes += 1;
        }
    }

    /// Like [`Session::score_spans`], but only computes the tokens.
    pub(super) async fn compute_spans(&mut self, mut texts: Vec<Unscored<'_>>) -> Result<usize> {
        let mut passes = 0;
        loop {
            let most = self.pass_tokens();
            let (spans, _) = next_pass(&mut texts, most);
            if spans.is_empty() {
                return Ok(passes);
            }
            let tokens: usize = spans.iter().map(|span| span.ids.len()).sum();
            let submitted = Instant::now();
            self.engine.pass(&spans).take().await?;
            if tokens == most {
                self.chunks.done(tokens, submitted, Instant::now());
            }
            passes += 1;
        }
    }
}

/// Takes tokens of `texts` for a pass of at most `room` tokens: all but the last token of each. Gives
/// the numbers of the texts too.
fn next_pass<'a>(texts: &mut [Unscored<'a>], mut room: usize) -> (Vec<Span<'a>>, Vec<usize>) {
    let (mut spans, mut of) = (Vec::new(), Vec::new());
    for (n, text) in texts.iter_mut().enumerate() {
        let Unscored { first, pos, ids } = *text;
        let tokens = ids.len().saturating_sub(1).min(room);
        if tokens > 0 && spans.len() < MAX_SPANS {
            spans.push(Span { first, pos, ids: &ids[..tokens], next: ids.get(tokens).copied() });
            of.push(n);
            *text = Unscored { first, pos: pos + tokens, ids: &ids[tokens..] };
            room -= tokens;
        }
    }
    (spans, of)
}

/// A text whose tokens are to be scored. Those before `pos` are in the KV cache.
#[derive(Clone, Copy)]
pub(super) struct Unscored<'a> {
    /// Where the sequence begins in the KV cache.
    pub(super) first: usize,
    /// Tokens of the sequence before `ids`.
    pub(super) pos: usize,
    /// The tokens from there on.
    pub(super) ids: &'a [u32],
}
