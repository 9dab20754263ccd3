//! Answers calls: one alone, with drafts; several as a batch, in steps that read the weights once for
//! all of them. A call joins at the next step. Each gets the tokens that it would get alone.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use web_time::Instant;

use super::caches::{Cached, given_up};
use super::calls::{Calls, Prompt};
use super::decode::Decoder;
use super::generate::GenerateOptions;
use super::generation::{Generation, Next};
use super::loaded::Session;
use super::output::Token;
use super::pace::Pace;
use super::prefill::{Chunk, Prefilled};
use super::run::Run;
use super::stats::{FinishReason, Stats};
use crate::compute::{Choice, Compute, Pending, Seat};
use crate::error::{Error, Result};

/// Chunks of prompts in flight, at most: one is prepared while another is computed.
const MAX_CHUNKS: usize = 2;

/// The generations that run, and what they have in flight.
pub(super) struct Running<'a> {
    pub(super) all: Vec<Generation<'a>>,
    in_flight: VecDeque<Work>,
    pace: Pace,
    pub(super) serials: u64,
    /// Whether the call that waits first has found no room.
    pub(super) blocked: bool,
}

/// What was submitted.
enum Work {
    /// A chunk of a prompt.
    Chunk(Chunk),
    /// The end of a prompt, which chooses a token.
    First { serial: u64, tokens: Pending<Vec<Choice>> },
    /// `n` steps of several texts.
    Batch { serials: Vec<u64>, tokens: Pending<Vec<Vec<Choice>>>, n: usize },
}

/// Why a generation does not run alone any more.
enum Alone {
    Ended,
    Joined,
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
        let calls = Calls::default();
        let prompt = Prompt::Ids(prompt.to_vec());
        let mut answer = calls.push(prompt, options.clone(), Box::new(on_token));
        self.serve(&calls).await?;
        match answer.try_recv() {
            Ok(Some(stats)) => stats,
            _ => Err(Error::Internal("a call was not answered".into())),
        }
    }

    /// Answers `calls` until there are none, those that come meanwhile too.
    ///
    /// What is wrong with one call is its own error. Errors: `device-lost`, which the calls that run
    /// get too; those that wait go on waiting.
    pub async fn serve(&mut self, calls: &Calls<'_>) -> Result<()> {
        // A future that was dropped may have left some.
        self.caches.release_all();
        let mut running = Running {
            all: Vec::new(),
            in_flight: VecDeque::new(),
            pace: Pace::like(&self.pace, self.traits.depth),
            serials: 0,
            blocked: false,
        };
        let served = self.serve_all(calls, &mut running).await;
        if let Err(error) = &served {
            running.all.into_iter().for_each(|generation| generation.fail(error.clone()));
        }
        served?;
        self.grow_ahead().await
    }

    async fn serve_all<'a>(&mut self, calls: &Calls<'a>, running: &mut Running<'a>) -> Result<()> {
        loop {
            self.end_canceled(running);
            while running.all.len() < self.traits.slots && !running.blocked {
                let Some(call) = calls.pop() else { break };
                self.begin(calls, call, running).await?;
            }
            match running.all.len() {
                0 if calls.is_empty() => return Ok(()),
                0 => running.blocked = false,
                1 if running.in_flight.is_empty() => {
                    let Some(mut one) = running.all.pop() else { continue };
                    (one.decodes, one.in_flight) = (false, 0);
                    match self.alone(&mut one, calls, running).await {
                        Ok(Alone::Joined) => running.all.push(one),
                        Ok(Alone::Ended) => {
                            self.caches.release(one.text);
                            running.blocked = false;
                            one.end();
                        }
                        Err(error) => {
                            self.caches.release(one.text);
                            running.blocked = false;
                            one.fail(error);
                            self.engine.check()?;
                        }
                    }
                }
                n => {
                    if n > 1 {
                        self.submit(running).await?;
                    }
                    self.take(running).await?;
                }
            }
        }
    }

    /// Runs a generation without others, until it ends or a call can join.
    ///
    /// A call that arrives while its prompt is computed waits for no more than the chunks in flight.
    async fn alone(
        &mut self,
        one: &mut Generation<'_>,
        calls: &Calls<'_>,
        running: &mut Running<'_>,
    ) -> Result<Alone> {
        let can_join = self.traits.slots > 1 && !running.blocked;
        let joins = || can_join && !calls.is_empty();
        let tokenizer = Rc::clone(&self.tokenizer);
        let drafts = one.options.prompt_lookup.unwrap_or(self.traits.prompt_lookup);
        loop {
            self.use_text(one)?;
            let stopped = || one.is_canceled() || joins();
            if let Prefilled::Stopped(chunk) = self.prefill(one.text, one.from, &stopped).await? {
                if one.is_canceled() {
                    one.stats.finish_reason = FinishReason::Abort;
                    return Ok(Alone::Ended);
                }
                // It had its turn: the prompts of those who join come first.
                one.prompted = chunk.as_ref().map(|chunk| chunk.submitted);
                running.in_flight.extend(chunk.map(Work::Chunk));
                return Ok(Alone::Joined);
            }
            let Self { engine, info, caches, pace, chunks, .. } = self;
            let text = caches.running(one.text)?;
            count(&**engine, one, text);
            let left = (text.room().min(one.most()) + 1).saturating_sub(text.tokens.len());
            let Cached { tokens, filled, .. } = text;
            let stats = std::mem::take(&mut one.stats);
            let run = Run {
                model: &**engine,
                tokens,
                prompt: one.prompt,
                filled,
                pace,
                left,
                stats,
                last_is_on_gpu: false,
            };
            let mut decoder = Decoder::new(run, drafts && one.can_draft());
            let mut next = Next::Token;
            let mut joined = false;
            while next == Next::Token {
                let choice = match joined {
                    false => decoder.next().await?,
                    true => decoder.next_in_flight().await?,
                };
                let Some(choice) = choice else { break };
                let first = one.first.is_none();
                next = one.take(&tokenizer, info.vocab_size, choice, decoder.stats())?;
                if first {
                    chunks.took_at_most(one.prompt - one.reused, one.started.elapsed());
                }
                joined = joined || joins();
            }
            one.stats = decoder.finish();
            let has_room = match next {
                Next::End => return Ok(Alone::Ended),
                Next::Close(ids) => self.close(one, &ids).await?,
                Next::Token if joined => true,
                Next::Token => self.extend(one, &[]).await?,
            };
            if !has_room {
                return Err(given_up());
            }
            if joined {
                return Ok(Alone::Joined);
            }
        }
    }

    /// Submits what is to be in flight while the next tokens are awaited.
    async fn submit(&mut self, running: &mut Running<'_>) -> Result<()> {
        for i in 0..running.all.len() {
            let one = &running.all[i];
            let text = self.caches.running(one.text)?;
            let is_full = match one.decodes {
                true => one.in_flight == 0 && one.steps_left(text) == 0,
                false => text.tokens.len() > text.room(),
            };
            if is_full {
                // Its room is full. Without more it waits for that of another.
                running.all[i].decodes = !self.extend(&running.all[i], &[]).await?;
            }
        }
        self.submit_prompts(running)?;
        loop {
            let steps: usize = running.in_flight.iter().map(Work::steps).sum();
            let batch_steps = running.pace.batch_steps();
            // However slow the card is, chunks of prompts do not keep a batch out.
            if running.in_flight.iter().any(|work| matches!(work, Work::Batch { .. }))
                && !running.pace.has_room(running.in_flight.len(), steps, batch_steps)
            {
                return Ok(());
            }
            let mut seats = Vec::new();
            let mut n = batch_steps;
            for one in running.all.iter().filter(|one| one.decodes) {
                let text = self.caches.running(one.text)?;
                let left = one.steps_left(text);
                if left > 0 {
                    seats.push((
                        one.serial,
                        Seat { slot: one.slot, first: text.first(), pos: text.filled },
                    ));
                    n = n.min(left);
                }
            }
            if seats.is_empty() {
                return Ok(());
            }
            let (serials, seats): (Vec<u64>, Vec<Seat>) = seats.into_iter().unzip();
            let tokens = self.engine.decode_batch(&seats, n);
            for one in running.all.iter_mut().filter(|one| serials.contains(&one.serial)) {
                one.in_flight += n;
                one.stats.batch = one.stats.batch.max(serials.len());
                if let Some(text) = self.caches.get(one.text) {
                    text.filled += n;
                }
            }
            running.in_flight.push_back(Work::Batch { serials, tokens, n });
        }
    }

    /// Submits a chunk of each prompt that is not computed yet, as far as few are in flight. Prompts
    /// take turns, so that a short one need not wait for all of a long one.
    fn submit_prompts(&mut self, running: &mut Running<'_>) -> Result<()> {
        running.all.sort_by_key(|one| one.prompted);
        for one in running.all.iter_mut().filter(|one| !one.decodes && one.in_flight == 0) {
            let chunks = running.in_flight.iter().filter(|work| matches!(work, Work::Chunk(_)));
            if chunks.count() >= MAX_CHUNKS {
                return Ok(());
            }
            self.use_text(one)?;
            let text = self.caches.running(one.text)?;
            let (pos, len) = (text.filled, text.tokens.len());
            if len > text.room() {
                continue;
            }
            if pos + 1 == len && one.first.is_some() {
                // Its last token was chosen, and is here.
                self.engine.put_token(one.slot, text.tokens[pos]);
                count(&*self.engine, one, text);
                one.decodes = true;
                continue;
            }
            let (tokens, end) = self.chunks.next(one.from, pos, len);
            text.filled += tokens;
            let ids = &text.tokens[pos..pos + tokens];
            if pos + tokens == len {
                count(&*self.engine, one, text);
                let tokens = self.engine.prefill_and_sample(ids, pos);
                running.in_flight.push_back(Work::First { serial: one.serial, tokens });
                one.in_flight = 1;
                one.decodes = true;
            } else {
                let chunk = Chunk::submit(&*self.engine, ids, pos, end);
                one.prompted = Some(chunk.submitted);
                running.in_flight.push_back(Work::Chunk(chunk));
            }
        }
        Ok(())
    }

    /// Waits for the oldest of what is in flight.
    async fn take(&mut self, running: &mut Running<'_>) -> Result<()> {
        match running.in_flight.pop_front() {
            None => Err(given_up()),
            Some(Work::Chunk(chunk)) => {
                chunk.take(&mut self.chunks).await?;
                running.pace.pause();
                Ok(())
            }
            Some(Work::First { serial, tokens }) => {
                let tokens = tokens.take().await?;
                running.pace.pause();
                self.accept(running, serial, tokens).await
            }
            Some(Work::Batch { serials, tokens, n }) => {
                let tokens = tokens.take().await?;
                running.pace.came(Instant::now(), n);
                for (serial, tokens) in serials.into_iter().zip(tokens) {
                    self.accept(running, serial, tokens).await?;
                }
                Ok(())
            }
        }
    }

    /// Gives a generation its tokens, unless it has ended.
    async fn accept(
        &mut self,
        running: &mut Running<'_>,
        serial: u64,
        tokens: Vec<Choice>,
    ) -> Result<()> {
        let Some(index) = running.all.iter().position(|one| one.serial == serial) else {
            return Ok(());
        };
        let tokenizer = Rc::clone(&self.tokenizer);
        for choice in tokens {
            let one = &mut running.all[index];
            one.in_flight -= 1;
            if let Some(text) = self.caches.get(one.text) {
                text.tokens.push(choice.id);
            }
            let mut stats = std::mem::take(&mut one.stats);
            let next = one.take(&tokenizer, self.info.vocab_size, choice, &mut stats);
            stats.unused_tokens = one.in_flight;
            one.stats = stats;
            match next {
                Ok(Next::Token) => {}
                Ok(Next::Close(ids)) => {
                    running.serials += 1;
                    one.serial = running.serials;
                    one.in_flight = 0;
                    one.decodes = false;
                    // Without room it waits for that of another.
                    self.close(one, &ids).await?;
                    return Ok(());
                }
                end => {
                    let one = running.all.remove(index);
                    self.caches.release(one.text);
                    running.blocked = false;
                    match end {
                        Err(error) => one.fail(error),
                        Ok(_) => one.end(),
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Ends the generations that nobody waits for.
    fn end_canceled(&mut self, running: &mut Running<'_>) {
        let (canceled, rest) = running.all.drain(..).partition(Generation::is_canceled);
        running.all = rest;
        let canceled: Vec<Generation<'_>> = canceled;
        for one in canceled {
            self.caches.release(one.text);
            running.blocked = false;
        }
    }

    /// Makes the engine use a generation's text and slot.
    fn use_text(&mut self, one: &Generation<'_>) -> Result<()> {
        let text = self.caches.running(one.text)?;
        self.engine.use_cache(text.first());
        self.engine.use_slot(one.slot);
        Ok(())
    }

    /// Adds the ids of [`Next::Close`] to a text, and gives it room. Gives whether there was room.
    async fn close(&mut self, one: &mut Generation<'_>, ids: &[u32]) -> Result<bool> {
        let has_room = self.extend(one, ids).await?;
        if let Some(text) = self.caches.get(one.text) {
            one.from = text.filled;
        }
        Ok(has_room)
    }
}

/// Counts the tokens of a generation's text, if they change the model's logits.
fn count(engine: &dyn Compute, one: &Generation<'_>, text: &Cached) {
    if one.options.sampling.is_penalized() {
        let (prompt, output) = text.tokens.split_at(one.prompt);
        engine.count(prompt, output);
    }
}

impl Work {
    /// Steps that take the time of one.
    fn steps(&self) -> usize {
        match self {
            Self::Chunk(_) | Self::First { .. } => 1,
            Self::Batch { n, .. } => *n,
        }
    }
}
