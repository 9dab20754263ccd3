//! The generation loop: prompt in, tokens and text out, until a stop rule holds.

use std::ops::ControlFlow;

use serde::Serialize;
use web_time::Instant;

use super::Session;
use super::decode::Decoder;
use super::run::Run;
use super::stats::{FinishReason, Stats};
use super::stop::StopTexts;
use crate::error::{Error, Result};
use crate::sampling::Sampling;
use crate::tokenizer::{TextStream, Tokenizer};

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
    /// one pass; `None`: where that is faster.
    pub prompt_lookup: Option<bool>,
}

/// One generated token. `text` holds whole characters only and may be empty: a character can
/// take several tokens, and text that could begin a stop text is held back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Token {
    /// The token's id; `None` for text that was held back until the end.
    pub id: Option<u32>,
    /// The text that the token adds.
    pub text: String,
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
        self.prefill(prompt, reused).await?;
        let prompt_lookup = options.prompt_lookup.unwrap_or(self.engine.gpu().tuning.prompt_lookup);
        let Self { engine, tokenizer, info, tokens, filled, pace, chunks, .. } = self;
        let run = Run {
            model: engine,
            tokens,
            filled,
            pace,
            stats,
            left: limit,
            greedy: options.sampling.is_greedy(),
            last_is_on_gpu: false,
        };
        let mut decoder = Decoder::new(run, prompt_lookup);
        let mut output =
            Output { text: TextStream::after(prompt), stop: StopTexts::new(&options.stop) };
        let mut first = None;
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
            let (text, stopped) = output.push(tokenizer, id)?;
            if on_token(Token { id: Some(id), text }).is_break() {
                stats.finish_reason = FinishReason::Abort;
                break;
            }
            if stopped {
                stats.finish_reason = FinishReason::Stop;
                break;
            }
        }
        let mut stats = decoder.finish();
        let rest = output.finish();
        if !rest.is_empty() {
            let _ = on_token(Token { id: None, text: rest });
        }
        if let Some(first) = first {
            let after_it = stats.completion_tokens.saturating_sub(1);
            stats.decode_tokens_per_second = rate(after_it, first.elapsed().as_secs_f64());
        }
        Ok(stats)
    }
}

/// Tokens per second; 0 if the clock, which browsers make coarse, saw no time pass.
fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
}

/// The text of the tokens, held back where a stop text may begin.
struct Output<'a> {
    text: TextStream,
    stop: StopTexts<'a>,
}

impl Output<'_> {
    /// The text that is certain after `id`, and whether a stop text is complete.
    fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<(String, bool)> {
        let text = self.text.push(tokenizer, id)?;
        Ok(self.stop.push(&text))
    }

    /// The text that was held back.
    fn finish(&mut self) -> String {
        let tail = self.text.finish();
        let (mut text, stopped) = self.stop.push(&tail);
        if !stopped {
            text.push_str(&self.stop.finish());
        }
        text
    }
}
