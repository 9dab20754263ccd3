//! A generation takes each of its tokens until a stop rule holds.

use std::ops::ControlFlow;

use web_time::Instant;

use super::caches::{CacheId, Cached, Wanted};
use super::calls::{Caller, OnToken};
use super::constraint::{Constraint, Follow};
use super::draft::Drafter;
use super::generate::GenerateOptions;
use super::guess::Guess;
use super::output::{Output, Token};
use super::stats::{FinishReason, Stats};
use crate::chat::{Channel, Channels};
use crate::compute::Choice;
use crate::error::{Error, Result};
use crate::sampling::Mask;
use crate::tokenizer::{Part, Special, Tokenizer};

/// The fewest tokens for which a generation gets room, unless it may have fewer. When the room is
/// full, it gets more.
const MIN_ROOM: usize = 256;

/// A generation that has its range of the KV cache.
pub(super) struct Generation<'a> {
    pub(super) options: GenerateOptions,
    pub(super) on_token: OnToken<'a>,
    pub(super) caller: Caller,
    /// Its sequence in the KV cache.
    pub(super) sequence: CacheId,
    /// Its slot of the engine.
    pub(super) slot: usize,
    /// Tokens of the prompt, and those of them that were in the cache.
    pub(super) prompt: usize,
    pub(super) reused: usize,
    /// Tokens of its sequence that were in the cache when its computation began.
    pub(super) from: usize,
    /// The most tokens to generate.
    pub(super) limit: usize,
    pub(super) output: Output,
    /// Decides which tokens may follow, if the caller gave a constraint.
    pub(super) constraint: Option<Box<dyn Constraint>>,
    /// The mask of the tokens that may follow; `None`: any may.
    pub(super) mask: Option<Mask>,
    /// Whether the engine chooses its tokens by a mask.
    pub(super) masked: bool,
    /// Whether its mask stays as it is, whatever the next token is, so that steps may run ahead.
    pub(super) is_free: bool,
    /// Decides when steps run ahead although a mask is known.
    pub(super) guess: Guess,
    /// Whether such steps are faster, at the pace of the last token.
    pub(super) guesses: bool,
    pub(super) stats: Stats,
    /// When the computation of its prompt began.
    pub(super) started: Instant,
    /// When the first token came.
    pub(super) first: Option<Instant>,
    /// Names the generation in the work in flight. When that work becomes useless, the name
    /// changes.
    pub(super) serial: u64,
    /// When a chunk of its prompt was last submitted while others run; `None` at first. Prompts
    /// take turns by this time.
    pub(super) prompted: Option<Instant>,
    /// Whether the token that its next step computes is on the GPU, or will be when the steps in
    /// flight are done.
    pub(super) decodes: bool,
    /// Whether its last token has gone through the layers already, or will when the work in flight
    /// is done. Its next step then only chooses a token.
    pub(super) ahead: bool,
    /// Whether the engine has counted its tokens for the penalties. Steps count theirs by
    /// themselves.
    pub(super) counted: bool,
    /// Decides when to draft while it runs alone.
    pub(super) drafter: Option<Drafter>,
    /// How many of its tokens are in flight.
    pub(super) in_flight: usize,
    /// How many of these, the last ones, are drafted and chosen by masks of their own.
    pub(super) drafted: usize,
    /// The tokens that were put in last. At the end the sequence gets them, though they are not
    /// computed.
    pub(super) inserted: Vec<u32>,
}

/// How a generation goes on after a token.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// The model chooses the next token.
    Token,
    /// The generation ends, because a stop rule holds.
    End,
    /// These tokens are put in, although the model has not chosen them.
    Insert(Vec<u32>),
    /// The token may not follow. It is taken back, and another is chosen.
    Again,
}

impl Generation<'_> {
    /// Whether drafts give the same tokens as steps.
    pub(super) fn can_draft(&self) -> bool {
        self.options.sampling.is_greedy()
    }

    /// Whether its next token has to be one of those that a constraint allows.
    fn is_held(&self) -> bool {
        self.constraint.is_some() && !self.is_free && self.mask.is_some()
    }

    /// Whether a token that may follow is the same with a mask as without. Of a draw, filters would
    /// keep other tokens.
    pub(super) fn can_guess(&self) -> bool {
        let sampling = &self.options.sampling;
        sampling.is_greedy() || !sampling.is_filtered()
    }

    /// Whether the engine has to choose with a mask and does not, or the other way round.
    pub(super) fn changes_mask(&self) -> bool {
        self.constraint.is_some() && self.masked != self.mask.is_some()
    }

    /// Whether the tokens in flight were chosen without knowing what may follow.
    pub(super) fn drops_in_flight(&self) -> bool {
        self.is_held() && self.in_flight > self.drafted
    }

    /// How many tokens may be in flight. The tokens up to there have to be known before the next
    /// ones can be submitted, because a constraint or a budget may put in others.
    fn horizon(&self) -> usize {
        match &self.constraint {
            Some(_) if !self.is_free => self.guess.steps().unwrap_or(1),
            // With no token left, the reasoning goes on, because its end would leave no room for an
            // answer.
            _ => match self.output.left_of(self.options.max_thinking_tokens) {
                0 => usize::MAX,
                left => left,
            },
        }
    }

    /// Whether the token in flight can be computed before it is known.
    pub(super) fn computes_ahead(&self, sequence: &Cached) -> bool {
        let has_room = sequence.filled < sequence.room().min(self.most());
        self.is_held() && self.decodes && self.in_flight == 1 && !self.ahead && has_room
    }

    /// Positions that steps may fill. The room of the sequence limits them, and so does the
    /// horizon.
    pub(super) fn most_filled(&self, sequence: &Cached) -> usize {
        let known = self.horizon().saturating_sub(self.in_flight);
        sequence.room().min(self.most()).min(sequence.filled.saturating_add(known))
    }

    /// Positions that draft passes may fill. Where the answer is held, each of their tokens has a mask.
    pub(super) fn most_drafted(&self, sequence: &Cached) -> usize {
        match self.is_held() {
            true => sequence.room().min(self.most()),
            false => self.most_filled(sequence),
        }
    }

    /// The most tokens that its sequence may have.
    pub(super) fn most(&self) -> usize {
        // The keys and values of the last token need no room.
        self.prompt + self.limit - 1
    }

    /// The room that its sequence needs when it has `len` tokens.
    pub(super) fn wanted(&self, len: usize) -> Wanted {
        let most = self.most().max(len);
        Wanted { least: most.min(len + MIN_ROOM), most }
    }

    /// Steps that can be submitted behind those in flight.
    pub(super) fn steps_left(&self, sequence: &Cached) -> usize {
        self.most_filled(sequence).saturating_sub(sequence.filled)
    }

    /// Takes a token that was generated.
    ///
    /// Errors: `internal` if there was no token to choose, or none of those that might follow.
    pub(super) fn take(
        &mut self,
        tokenizer: &Tokenizer,
        n_vocab: usize,
        choice: Choice,
    ) -> Result<Next> {
        let id = choice.id;
        if id as usize >= n_vocab {
            return Err(Error::Internal("no logit is a number".into()));
        }
        if self.mask.take().is_some_and(|mask| !mask.allows(id)) {
            let why = "no token that may follow has a logit that is a number";
            return Err(Error::Internal(why.into()));
        }
        if let Some(mask) = self.guess.refuses(id) {
            self.mask = Some(mask);
            return Ok(Next::Again);
        }
        if self.first.is_none() {
            self.first = Some(Instant::now());
            let (tokens, time) = (self.prompt - self.reused, self.started.elapsed());
            self.stats.time_to_first_token = self.caller.called.elapsed().as_secs_f64() * 1e3;
            self.stats.prefill_tokens_per_second = rate(tokens, time.as_secs_f64());
        }
        let reasoned = self.stats.reasoning_tokens;
        if let Some(end) = self.push(tokenizer, choice)? {
            let is_cut = self.stats.finish_reason == FinishReason::Length;
            // An answer that is complete at its limit has not been cut off.
            return match is_cut && self.stats.reasoning_tokens == reasoned {
                true => self.follow(tokenizer, n_vocab, Some(id)).map(|_| Next::End),
                false => Ok(end),
            };
        }
        if self.output.left_of(self.options.max_thinking_tokens) == 0 {
            let part = Part { text: Channels::CUT, special: Special::All };
            let ids = tokenizer.encode_parts_after(&[id], &[part])?;
            // If there is no room for an answer, the reasoning goes on with the tokens that are
            // left.
            if self.limit - self.stats.completion_tokens > ids.len() {
                return self.close(tokenizer, n_vocab, ids);
            }
        }
        let taken = (self.stats.reasoning_tokens == reasoned).then_some(id);
        self.follow(tokenizer, n_vocab, taken)
    }

    /// Lets the constraint take a token of the answer, and finds out what may follow.
    ///
    /// Errors: those of the constraint, and `internal` for tokens outside the vocabulary.
    pub(super) fn follow(
        &mut self,
        tokenizer: &Tokenizer,
        n_vocab: usize,
        taken: Option<u32>,
    ) -> Result<Next> {
        let Some(constraint) = &mut self.constraint else { return Ok(Next::Token) };
        if let Some(id) = taken {
            constraint.take(id)?;
        }
        let left = self.limit - self.stats.completion_tokens;
        let mut inserted = Vec::new();
        let mut is_complete = false;
        self.is_free = false;
        while inserted.len() <= left {
            if self.output.channel() == Channel::Reasoning {
                // The reasoning is free, but an answer that has to keep to something may not be
                // left out after it.
                let constraints = self.options.constraints.as_ref();
                let is_needed = constraints.is_some_and(|all| !all.is_free_at_first());
                self.mask = is_needed.then(|| Mask::without(n_vocab, tokenizer.stop()));
                self.is_free = true;
                break;
            }
            match constraint.follow()? {
                Follow::Any => self.is_free = true,
                Follow::OneOf(mask) => self.mask = self.guess.hold(mask, self.guesses),
                Follow::Nothing => is_complete = true,
                Follow::These(ids) if !ids.is_empty() => {
                    self.guess.end();
                    inserted.extend(ids);
                    continue;
                }
                Follow::These(_) => return Err(Error::Internal("no token to put in".into())),
            }
            break;
        }
        inserted.truncate(left);
        let mut end = None;
        self.inserted.clear();
        for &id in &inserted {
            if id as usize >= n_vocab {
                return Err(Error::Internal(format!("token {id} of {n_vocab} to put in")));
            }
            self.stats.forced_tokens += 1;
            end = self.push(tokenizer, Choice::from(id))?;
            self.inserted.push(id);
            if end.is_some() {
                break;
            }
        }
        let is_cut = self.stats.finish_reason == FinishReason::Length;
        if is_complete && is_cut {
            self.stats.finish_reason = FinishReason::Stop;
            return Ok(Next::End);
        }
        if let Some(end) = end {
            return Ok(end);
        }
        Ok(match inserted.is_empty() {
            true => Next::Token,
            false => Next::Insert(inserted),
        })
    }

    /// Adds a token to the output. Gives the end if the token ends the generation.
    fn push(&mut self, tokenizer: &Tokenizer, choice: Choice) -> Result<Option<Next>> {
        if tokenizer.is_stop(choice.id) {
            self.stats.finish_reason = FinishReason::Stop;
            return Ok(Some(Next::End));
        }
        self.stats.completion_tokens += 1;
        let (tokens, stopped) = self.output.push(tokenizer, choice)?;
        let is_reasoning = tokens.last().is_some_and(|token| token.channel == Channel::Reasoning);
        self.stats.reasoning_tokens += usize::from(is_reasoning);
        if self.tell(tokens).is_break() {
            self.stats.finish_reason = FinishReason::Abort;
            return Ok(Some(Next::End));
        }
        if stopped {
            self.stats.finish_reason = FinishReason::Stop;
            return Ok(Some(Next::End));
        }
        Ok((self.stats.completion_tokens >= self.limit).then_some(Next::End))
    }

    /// Begins the reasoning with `<think>`, the token `open`.
    pub(super) fn reason(
        &mut self,
        tokenizer: &Tokenizer,
        n_vocab: usize,
        open: u32,
    ) -> Result<Next> {
        if let Some(end) = self.push(tokenizer, Choice::from(open))? {
            return Ok(end);
        }
        self.follow(tokenizer, n_vocab, None)?;
        Ok(Next::Insert(vec![open]))
    }

    /// Ends the reasoning with the tokens with which the model would have ended it.
    fn close(&mut self, tokenizer: &Tokenizer, n_vocab: usize, mut ids: Vec<u32>) -> Result<Next> {
        self.stats.completion_tokens += ids.len();
        self.stats.reasoning_tokens += ids.len();
        let tokens = self.output.close(&ids);
        if self.tell(tokens).is_break() {
            self.stats.finish_reason = FinishReason::Abort;
            return Ok(Next::End);
        }
        // A constraint may put tokens in at the beginning of the answer.
        match self.follow(tokenizer, n_vocab, None)? {
            Next::Insert(more) => {
                ids.extend(more);
                Ok(Next::Insert(ids))
            }
            Next::Token => Ok(Next::Insert(ids)),
            end => Ok(end),
        }
    }

    /// Answers the call. Before that, text that was held back goes to the caller.
    pub(super) fn end(mut self) {
        let rest = self.output.finish();
        let _ = self.tell(rest);
        if self.stats.finish_reason == FinishReason::Stop && self.output.has_calls() {
            self.stats.finish_reason = FinishReason::ToolCalls;
        }
        if let Some(first) = self.first {
            let after_it = self.stats.completion_tokens.saturating_sub(1);
            self.stats.decode_tokens_per_second = rate(after_it, first.elapsed().as_secs_f64());
        }
        self.caller.answer(Ok(self.stats));
    }

    /// Answers the call before its end, because the caller wants no more tokens.
    pub(super) fn stop(mut self) {
        self.stats.finish_reason = FinishReason::Abort;
        self.stats.unused_tokens = self.in_flight;
        self.end();
    }

    /// Answers the call with an error.
    pub(super) fn fail(self, error: Error) {
        self.caller.answer(Err(error));
    }

    /// Gives the caller tokens until it breaks.
    fn tell(&mut self, tokens: Vec<Token>) -> ControlFlow<()> {
        if self.caller.is_gone() {
            return ControlFlow::Break(());
        }
        tokens.into_iter().try_for_each(&mut self.on_token)
    }
}

/// Tokens per second. 0 if no time passed, by a clock that a browser made coarse.
fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
}
