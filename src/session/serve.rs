//! Answers calls: one call alone, with drafts, or several as a batch, in steps that read the
//! weights once for all of them. A call joins when its prompt is computed. Each gets the tokens
//! that it would get alone.
//!
//! All submitted work waits in one queue, and all tokens are taken in one way, whether one call
//! runs or several.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::slice::from_ref;

use web_time::Instant;

use super::caches::given_up;
use super::calls::{Calls, Prompt};
use super::draft::Drafter;
use super::generate::GenerateOptions;
use super::generation::{Generation, Next};
use super::loaded::Session;
use super::output::Token;
use super::pace::Pace;
use super::running::{Running, run};
use super::stats::Stats;
use super::work::{InFlight, Work};
use crate::compute::Choice;
use crate::error::Result;

impl Session {
    /// Generates from `prompt`, and calls `on_token` with each token until it breaks.
    ///
    /// Tokens whose keys and values the cache still holds are not computed again. If the future is
    /// dropped, the generation stops after the steps in flight, and computed keys and values stay
    /// valid.
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
        let answer = calls.push(prompt, options.clone(), Box::new(on_token));
        self.serve(&calls).await?;
        answer.await
    }

    /// Answers `calls` until there are none. More calls may come meanwhile.
    ///
    /// If something is wrong with one call, only that call gets the error. Errors: `device-lost`.
    /// Running calls get it too, and waiting calls go on waiting.
    pub async fn serve(&mut self, calls: &Calls<'_>) -> Result<()> {
        // Some may still count as running if a future was dropped.
        self.caches.release_all();
        let mut running = Running {
            all: Vec::new(),
            in_flight: InFlight::default(),
            ahead: Vec::new(),
            pace: Pace::like(&self.pace, self.traits.depth),
            serials: 0,
            blocked: false,
            full: false,
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
            self.end_unwanted(calls, running);
            self.extend_full(running).await?;
            while running.all.len() < self.traits.slots && !running.blocked && !running.full {
                let Some(call) = calls.pop() else { break };
                // Sequences may move now, and they must not take the results of draft passes with
                // them.
                running.drop_drafts();
                self.begin(calls, call, running).await?;
            }
            match running.all.len() {
                0 if calls.is_empty() => return Ok(()),
                0 => running.try_again(),
                _ => {
                    self.submit(running)?;
                    self.take(running).await?;
                }
            }
        }
    }

    /// Gives more room to generations that have used theirs. If there is none, they wait for the
    /// room of another generation.
    async fn extend_full(&mut self, running: &mut Running<'_>) -> Result<()> {
        if running.full {
            return Ok(());
        }
        for one in &running.all {
            let sequence = self.caches.running(one.sequence)?;
            let is_full = match one.decodes {
                true => one.in_flight == 0 && !one.ahead && one.steps_left(sequence) == 0,
                false => sequence.tokens.len() > sequence.room(),
            };
            if is_full && !self.extend(one, &[]).await? {
                running.full = true;
            }
        }
        Ok(())
    }

    /// Waits for the oldest work in flight.
    async fn take(&mut self, running: &mut Running<'_>) -> Result<()> {
        match running.in_flight.pop() {
            None => Err(given_up()),
            Some(Work::Chunk(chunk)) => {
                chunk.take(&mut self.chunks).await?;
                self.pause(running);
                Ok(())
            }
            Some(Work::Steps { serials, tokens, n, ends_prompt }) => {
                let tokens = tokens.take().await?;
                if ends_prompt {
                    self.pause(running);
                }
                let (now, is_alone) = (Instant::now(), running.all.len() == 1);
                let (pace, other) = match is_alone {
                    true => (&mut self.pace, &mut running.pace),
                    false => (&mut running.pace, &mut self.pace),
                };
                pace.came(now, n);
                other.pause();
                // Other answers fill the time in which a constraint looks at a token.
                let guesses = is_alone && self.chunks.grid().is_none() && pace.is_fast();
                running.all.iter_mut().for_each(|one| one.guesses = guesses && one.can_guess());
                for (serial, tokens) in serials.into_iter().zip(tokens) {
                    self.accept(running, serial, tokens).await?;
                }
                Ok(())
            }
            Some(Work::Draft { serial, ids, choices }) => {
                let chosen = choices.take().await?;
                self.pause(running);
                let Some(one) = running.all.iter_mut().find(|one| one.serial == serial) else {
                    return Ok(());
                };
                self.use_sequence(one)?;
                let mut drafter = one.drafter.take().unwrap_or_else(|| Drafter::new(false));
                if one.masked {
                    // Drafted tokens in flight have masks. A step without one could not follow them.
                    one.guesses = false;
                }
                let sequence = self.caches.running(one.sequence)?;
                let mut run = run(&*self.engine, one, sequence, &mut self.pace);
                let tokens = drafter.accepted(&mut run, &mut running.in_flight, &ids, chosen);
                one.drafter = Some(drafter);
                self.accept(running, serial, tokens).await
            }
        }
    }

    /// Notes that the time until the next tokens will not be the time of a step.
    fn pause(&mut self, running: &mut Running<'_>) {
        self.pace.pause();
        running.pace.pause();
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
            one.drafted = one.drafted.min(one.in_flight);
            if let Some(sequence) = self.caches.get(one.sequence) {
                sequence.tokens.push(choice.id);
                if let Some(drafter) = &mut one.drafter {
                    drafter.observe(&sequence.tokens);
                }
            }
            let is_first = one.first.is_none();
            let next = one.take(&tokenizer, self.info.vocab_size, choice);
            if is_first && one.stats.batch == 1 {
                self.chunks.took_at_most(one.prompt - one.reused, one.started.elapsed());
            }
            one.stats.unused_tokens = one.in_flight;
            if let (Ok(Next::Again), Some(sequence)) = (&next, self.caches.get(one.sequence)) {
                sequence.tokens.pop();
            }
            if !self.go_on(running, index, next).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Acts on `next` after a token of the generation at `index`. Gives whether the tokens in
    /// flight are still of use.
    pub(super) async fn go_on(
        &mut self,
        running: &mut Running<'_>,
        index: usize,
        next: Result<Next>,
    ) -> Result<bool> {
        let one = &mut running.all[index];
        let mut next = next;
        if matches!(next, Ok(Next::Token | Next::Insert(_) | Next::Again)) {
            let changes = one.changes_mask();
            if changes {
                one.masked = one.mask.is_some();
                self.engine.use_slot(one.slot);
                self.engine.set_choosing(&one.options.choosing(one.masked));
                self.engine.compile_choosing().await;
            }
            if changes || one.drops_in_flight() {
                // The next token is chosen anew.
                next = match next {
                    Ok(Next::Token | Next::Again) => Ok(Next::Insert(Vec::new())),
                    next => next,
                };
            }
            if let Some(mask) = &one.mask {
                next = self.engine.write_masks(one.slot, from_ref(mask)).and(next);
            }
        }
        match next {
            Ok(Next::Token) => return Ok(true),
            Ok(Next::Insert(ids)) => {
                running.serials += 1;
                one.serial = running.serials;
                (one.in_flight, one.drafted) = (0, 0);
                one.inserted.clear();
                (one.decodes, one.counted, one.ahead) = (false, false, false);
                if self.chunks.grid().is_some() || ids.is_empty() {
                    // Its last token may be computed or not, depending on how many steps were in
                    // flight. With nothing behind it, its logits are needed.
                    let sequence = self.caches.running(one.sequence)?;
                    sequence.filled = sequence.filled.min(sequence.tokens.len() - 1);
                }
                // If there is no room, it waits for the room of another generation.
                self.extend(one, &ids).await?;
                let sequence = self.caches.running(one.sequence)?;
                one.from = sequence.filled;
                if let Some(drafter) = one.drafter.as_mut().filter(|_| !ids.is_empty()) {
                    drafter.inserted(&sequence.tokens);
                }
                // They draft what would have come.
                running.drop_drafts();
            }
            end => {
                let one = running.all.remove(index);
                if let Some(sequence) = self.caches.get(one.sequence) {
                    sequence.tokens.extend(&one.inserted);
                }
                self.caches.release(one.sequence);
                running.try_again();
                match end {
                    Err(error) => one.fail(error),
                    Ok(_) => one.end(),
                }
            }
        }
        Ok(false)
    }

    /// Ends the generations whose callers are gone or want no more tokens.
    fn end_unwanted(&mut self, calls: &Calls<'_>, running: &mut Running<'_>) {
        if calls.end_unwanted() {
            // The call after it may need less room.
            running.blocked = false;
        }
        let is_unwanted = |one: &Generation<'_>| one.caller.is_gone() || one.caller.is_stopped();
        let (unwanted, rest) = running.all.drain(..).partition(is_unwanted);
        running.all = rest;
        let unwanted: Vec<Generation<'_>> = unwanted;
        for one in unwanted {
            self.caches.release(one.sequence);
            running.try_again();
            one.stop();
        }
    }
}
