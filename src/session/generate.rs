//! The generation loop: prompt in, tokens and text out, until a stop rule holds.

use std::ops::ControlFlow;
use std::rc::Rc;

use web_time::Instant;

use super::caches::{CacheId, Cached, Wanted};
use super::decode::Decoder;
use super::output::{Output, Token};
use super::run::Run;
use super::stats::{FinishReason, Stats};
use super::{Session, given_up};
use crate::chat::{Channel, Channels};
use crate::error::{Error, Result};
use crate::sampling::Sampling;
use crate::tokenizer::{Part, Special};

/// What ends a reasoning whose budget is spent, as models write it.
const CLOSE: &str = "\n</think>\n\n";

/// Tokens for which a generation gets room at least, if it may have as many. When that is full, it
/// gets more.
const MIN_ROOM: usize = 256;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// Most tokens to generate; `None`: as many as the context holds.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the generation. They are not part of the generated text.
    pub stop: Vec<String>,
    /// Whether greedy tokens may be drafted from text that repeats itself, and several checked in
    /// one pass; `None`: where that is faster. With a penalty there are no drafts: each token
    /// changes the logits of the next.
    pub prompt_lookup: Option<bool>,
    /// Most tokens of reasoning, in a chat. When they are spent, `</think>` is put into the context,
    /// and the answer begins. `max_tokens` counts them too. `None`: no other limit.
    pub max_thinking_tokens: Option<usize>,
}

impl Session {
    /// Generates from `prompt`, and calls `on_token` with each token until it breaks.
    ///
    /// Tokens whose keys and values the cache still holds are not computed again. Dropping the
    /// future stops the generation after the steps in flight; what was computed stays valid.
    ///
    /// Errors: `bad-option` (empty prompt, ids out of range, settings), `context-full`,
    /// `device-lost`.
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        on_token: &mut dyn FnMut(Token) -> ControlFlow<()>,
    ) -> Result<Stats> {
        options.sampling.check()?;
        let started = Instant::now();
        self.check_prompt(prompt)?;
        let mut stats = Stats { prompt_tokens: prompt.len(), ..Stats::default() };
        // The last token's keys and values need no room in the cache.
        let room = self.engine.n_ctx() - prompt.len() + 1;
        let limit = options.max_tokens.unwrap_or(room).min(room);
        if limit == 0 {
            return Ok(stats);
        }
        // Positions that its text fills in the end.
        let most = prompt.len() + limit - 1;
        let mut id = self.place(prompt, wanted(prompt.len(), most)).await?;
        let Some(text) = self.caches.get(id) else { return Err(given_up()) };
        let reused = text.filled;
        stats.reused_tokens = reused;
        let channels = match &text.conversation {
            // Not a chat: all that is generated continues the prompt.
            None => Channels::answer(),
            Some(conversation) if conversation.begins_reasoning() => Channels::reasoning(),
            Some(_) => Channels::new(),
        };

        self.engine.set_sampling(&options.sampling);
        let sampling = &options.sampling;
        let can_draft = sampling.is_greedy() && !sampling.is_penalized();
        let drafts = options.prompt_lookup.unwrap_or(self.engine.gpu().tuning.prompt_lookup);
        let tokenizer = Rc::clone(&self.tokenizer);
        let mut output = Output::new(&tokenizer, prompt, channels, &options.stop);
        let mut first = None;
        loop {
            self.prefill(id).await?;
            let Self { engine, info, caches, pace, chunks, .. } = self;
            let Some(text) = caches.get(id) else { return Err(given_up()) };
            if sampling.is_penalized() {
                let (prompt, output) = text.tokens.split_at(prompt.len());
                engine.count(prompt, output);
            }
            let room = text.room() - text.tokens.len() + 1;
            let Cached { tokens, filled, .. } = text;
            let run = Run {
                model: engine,
                tokens,
                filled,
                pace,
                left: room.min(limit - stats.completion_tokens),
                stats,
                last_is_on_gpu: false,
            };
            let mut decoder = Decoder::new(run, drafts && can_draft);
            let mut close = Vec::new();
            let mut ended = false;
            while let Some(id) = decoder.next().await? {
                if id as usize >= info.vocab_size {
                    return Err(Error::Internal("no logit is a number".into()));
                }
                let stats = decoder.stats();
                if first.is_none() {
                    first = Some(Instant::now());
                    let (tokens, time) = (prompt.len() - reused, started.elapsed());
                    chunks.took_at_most(tokens, time);
                    stats.time_to_first_token = time.as_secs_f64() * 1e3;
                    stats.prefill_tokens_per_second = rate(tokens, time.as_secs_f64());
                }
                if tokenizer.is_stop(id) {
                    stats.finish_reason = FinishReason::Stop;
                    ended = true;
                    break;
                }
                stats.completion_tokens += 1;
                ended = stats.completion_tokens == limit;
                let (tokens, stopped) = output.push(&tokenizer, id)?;
                let channel = tokens.last().map(|token| token.channel);
                stats.reasoning_tokens += usize::from(channel == Some(Channel::Reasoning));
                if tell(on_token, tokens).is_break() {
                    stats.finish_reason = FinishReason::Abort;
                    ended = true;
                    break;
                }
                if stopped {
                    stats.finish_reason = FinishReason::Stop;
                    ended = true;
                    break;
                }
                if output.has_spent(options.max_thinking_tokens) {
                    let part = Part { text: CLOSE, special: Special::All };
                    let ids = tokenizer.encode_parts_after(&[id], &[part])?;
                    // Without room for an answer, what is left may as well be reasoning.
                    if limit - stats.completion_tokens > ids.len() {
                        close = ids;
                        break;
                    }
                }
            }
            stats = decoder.finish();
            if ended {
                break;
            }
            if !close.is_empty() {
                // The budget of the reasoning is spent: end it as the model would have done.
                stats.completion_tokens += close.len();
                stats.reasoning_tokens += close.len();
                if tell(on_token, output.close(&close)).is_break() {
                    stats.finish_reason = FinishReason::Abort;
                    return Ok(stats);
                }
            }
            id = self.extend(id, &close, most).await?;
        }
        self.caches.release(id);
        let _ = tell(on_token, output.finish());
        if let Some(first) = first {
            let after_it = stats.completion_tokens.saturating_sub(1);
            stats.decode_tokens_per_second = rate(after_it, first.elapsed().as_secs_f64());
        }
        Ok(stats)
    }

    /// Adds `ids` to a text, and gives it more room, of at most `most` tokens in all. It may get
    /// another range then.
    async fn extend(&mut self, id: CacheId, ids: &[u32], most: usize) -> Result<CacheId> {
        let Some(text) = self.caches.get(id) else { return Err(given_up()) };
        let tokens = [&text.tokens[..], ids].concat();
        let conversation = text.conversation.take();
        self.caches.release(id);
        let id = self.place(&tokens, wanted(tokens.len(), most)).await?;
        if let Some(text) = self.caches.get(id) {
            text.conversation = conversation;
        }
        Ok(id)
    }
}

/// The room for a text of `len` tokens that may grow to `most`.
fn wanted(len: usize, most: usize) -> Wanted {
    Wanted { least: most.min(len + MIN_ROOM).max(len), most: most.max(len) }
}

/// Tells of tokens until the caller breaks.
fn tell(on_token: &mut dyn FnMut(Token) -> ControlFlow<()>, tokens: Vec<Token>) -> ControlFlow<()> {
    tokens.into_iter().try_for_each(on_token)
}

/// Tokens per second; 0 if the clock, which browsers make coarse, saw no time pass.
fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
}
