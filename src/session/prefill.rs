//! Checks a prompt, and computes it in chunks.

use super::caches::{CacheId, Wanted, given_up};
use super::chunks::{Chunk, Chunks};
use super::loaded::Session;
use super::room::MAX_KEPT;
use crate::compute::Compute;
use crate::error::{Error, Result};

impl Session {
    /// The logits after the last of `ids`, `[n_vocab]`.
    pub async fn logits(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        self.check_prompt(ids)?;
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let wanted = Wanted { least: ids.len(), most: ids.len() };
        let Some(id) = self.place(ids, wanted, MAX_KEPT).await? else { return Err(given_up()) };
        let sequence = self.caches.running(id)?;
        self.engine.use_cache(sequence.first());
        let begin = self.prefill(id).await?;
        let sequence = self.caches.running(id)?;
        let pos = std::mem::replace(&mut sequence.filled, ids.len());
        self.caches.release(id);
        self.engine.prefill_and_read(&ids[pos..], pos, begin).take().await
    }

    /// Refuses a model whose hidden states are no answers.
    pub(super) fn check_answers(&self) -> Result<()> {
        match self.engine.config().is_embedding() {
            true => Err(Error::EmbeddingModel { name: self.info.name.clone() }),
            false => Ok(()),
        }
    }

    /// Refuses a prompt that cannot be computed.
    pub(super) fn check_prompt(&self, ids: &[u32]) -> Result<()> {
        self.engine.check()?;
        self.check_answers()?;
        self.check_ids(ids)
    }

    /// Refuses tokens that cannot be computed.
    pub(super) fn check_ids(&self, ids: &[u32]) -> Result<()> {
        let bad = |why: String| Err(Error::BadOption { name: "prompt".into(), why });
        if ids.is_empty() {
            return bad("is empty".into());
        }
        let n_vocab = self.info.vocab_size;
        if let Some(id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
            return bad(format!("has token {id}, but the vocabulary ends at {}", n_vocab - 1));
        }
        if ids.len() > self.traits.n_ctx {
            return Err(Error::ContextFull { prompt: ids.len(), context: self.traits.n_ctx });
        }
        Ok(())
    }

    /// Computes a sequence after its filled tokens, except for the last chunk, because the step
    /// that reads logits computes that one. Gives where that chunk begins.
    async fn prefill(&mut self, id: CacheId) -> Result<usize> {
        let sequence = self.caches.running(id)?;
        let (ids, filled) = (&sequence.tokens, &mut sequence.filled);
        prefill_chunks(&*self.engine, &mut self.chunks, ids, filled).await
    }

    /// Computes the first `len` tokens of a sequence, after its filled ones.
    pub(super) async fn compute_up_to(&mut self, id: CacheId, len: usize) -> Result<()> {
        let sequence = self.caches.running(id)?;
        if sequence.filled >= len {
            return Ok(());
        }
        self.engine.use_cache(sequence.first());
        let (ids, filled) = (&sequence.tokens[..len], &mut sequence.filled);
        let begin = prefill_chunks(&*self.engine, &mut self.chunks, ids, filled).await?;
        let pos = std::mem::replace(filled, len);
        Chunk::submit(&*self.engine, &ids[pos..], pos, begin..len).take(&mut self.chunks).await
    }
}

/// Computes `ids` after the first `filled`, except for the last chunk. The next chunk is prepared
/// while one is computed. `filled` counts the tokens that were submitted. Gives where the chunk begins
/// whose last tokens are left.
async fn prefill_chunks(
    engine: &dyn Compute,
    chunks: &mut Chunks,
    ids: &[u32],
    filled: &mut usize,
) -> Result<usize> {
    let (from, len) = (*filled, ids.len());
    let mut before = None;
    loop {
        let pos = *filled;
        let (tokens, all) = chunks.next(from, pos, len);
        if pos + tokens == len {
            return Ok(all.start);
        }
        let chunk = Chunk::submit(engine, &ids[pos..pos + tokens], pos, all);
        *filled += tokens;
        if let Some(before) = before.replace(chunk) {
            before.take(chunks).await?;
        }
    }
}
