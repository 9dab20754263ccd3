//! The generation loop: prompt in, tokens and text out, until a stop rule holds.

use std::ops::ControlFlow;
use std::rc::Rc;

use web_time::Instant;

use super::Session;
use super::decode::Decoder;
use super::output::{Output, Token};
use super::run::Run;
use super::stats::{FinishReason, Stats};
use crate::chat::{Channel, Channels};
use crate::error::{Error, Result};
use crate::sampling::Sampling;
use crate::tokenizer::{Part, Special};

/// What ends a reasoning whose budget is spent, as models write it.
const CLOSE: &str = "\n</think>\n\n";

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
        let reused = self.begin(prompt)?;
        let stats =
            Stats { prompt_tokens: prompt.len(), reused_tokens: reused, ..Stats::default() };
        // The last token's keys and values need no room in the cache.
        let room = self.engine.n_ctx() - prompt.len() + 1;
        let limit = options.max_tokens.unwrap_or(room).min(room);
        if limit == 0 {
            return Ok(stats);
        }

        self.engine.set_sampling(&options.sampling);
        let sampling = &options.sampling;
        let can_draft = sampling.is_greedy() && !sampling.is_penalized();
        let drafts = options.prompt_lookup.unwrap_or(self.engine.gpu().tuning.prompt_lookup);
        let channels = match &self.conversation {
            // Not a chat: all that is generated continues the prompt.
            None => Channels::answer(),
            Some(conversation) if conversation.begins_reasoning() => Channels::reasoning(),
            Some(_) => Channels::new(),
        };
        let tokenizer = Rc::clone(&self.tokenizer);
        let mut output = Output::new(&tokenizer, prompt, channels, &options.stop);
        let mut first = None;
        let mut stats = stats;
        let mut from = reused;
        loop {
            let ids = self.tokens.clone();
            self.prefill(&ids, from).await?;
            if sampling.is_penalized() {
                let (prompt, output) = ids.split_at(prompt.len());
                self.engine.count(prompt, output);
            }
            let Self { engine, info, tokens, filled, pace, chunks, .. } = self;
            let run = Run {
                model: engine,
                tokens,
                filled,
                pace,
                left: limit - stats.completion_tokens,
                stats,
                last_is_on_gpu: false,
            };
            let mut decoder = Decoder::new(run, drafts && can_draft);
            let mut close = None;
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
                    break;
                }
                stats.completion_tokens += 1;
                let (tokens, stopped) = output.push(&tokenizer, id)?;
                let channel = tokens.last().map(|token| token.channel);
                stats.reasoning_tokens += usize::from(channel == Some(Channel::Reasoning));
                if tell(on_token, tokens).is_break() {
                    stats.finish_reason = FinishReason::Abort;
                    break;
                }
                if stopped {
                    stats.finish_reason = FinishReason::Stop;
                    break;
                }
                if output.has_spent(options.max_thinking_tokens) {
                    let part = Part { text: CLOSE, special: Special::All };
                    let ids = tokenizer.encode_parts_after(&[id], &[part])?;
                    // Without room for an answer, what is left may as well be reasoning.
                    if limit - stats.completion_tokens > ids.len() {
                        close = Some(ids);
                        break;
                    }
                }
            }
            stats = decoder.finish();
            let Some(close) = close else { break };
            // The budget of the reasoning is spent: end it as the model would have done.
            stats.completion_tokens += close.len();
            stats.reasoning_tokens += close.len();
            from = self.extend(&close);
            if tell(on_token, output.close(&close)).is_break() {
                stats.finish_reason = FinishReason::Abort;
                return Ok(stats);
            }
        }
        let _ = tell(on_token, output.finish());
        if let Some(first) = first {
            let after_it = stats.completion_tokens.saturating_sub(1);
            stats.decode_tokens_per_second = rate(after_it, first.elapsed().as_secs_f64());
        }
        Ok(stats)
    }

    /// Adds tokens to the context. Gives the number of tokens before them that are in the cache.
    fn extend(&mut self, ids: &[u32]) -> usize {
        self.filled = self.filled.min(self.tokens.len());
        self.tokens.extend(ids);
        self.filled
    }
}

/// Tells of tokens until the caller breaks.
fn tell(on_token: &mut dyn FnMut(Token) -> ControlFlow<()>, tokens: Vec<Token>) -> ControlFlow<()> {
    tokens.into_iter().try_for_each(on_token)
}

/// Tokens per second; 0 if the clock, which browsers make coarse, saw no time pass.
fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
}
