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

use super::caches::{Cached, given_up};
use super::calls::{Calls, Prompt};
use super::chunks::Chunk;
use super::draft::Drafter;
use super::foresight::Foresight;
use super::generate::GenerateOptions;
use super::generation::{Generation, Next};
use super::loaded::Session;
use super::output::Token;
use super::pace::Pace;
use super::run::Run;
use super::stats::Stats;
use super::work::{InFlight, Work};
use crate::compute::{Choice, Compute, Seat};
use crate::error::Result;

/// The most chunks of prompts in flight: one is prepared while another is computed.
const MAX_CHUNKS: usize = 2;

/// The generations that run, and the work in flight.
pub(super) struct Running<'a> {
    pub(super) all: Vec<Generation<'a>>,
    in_flight: InFlight,
    /// The sequences whose next tokens are computed ahead, by the serials of their generations. The
    /// last of the work in flight chooses these tokens.
    ahead: Vec<(u64, Seat)>,
    /// The pace of steps of several sequences.
    pace: Pace,
    pub(super) serials: u64,
    /// Whether there was no room for the first of the waiting calls.
    pub(super) blocked: bool,
    /// Whether a generation waits for more room. Until it has that, no call begins, because calls
    /// that come one after another could keep it waiting for ever.
    full: bool,
}

impl Running<'_> {
    /// Must be called when others may have room that had none.
    fn try_again(&mut self) {
        (self.blocked, self.full) = (false, false);
    }

    /// Drops the draft passes in flight.
    fn drop_drafts(&mut self) {
        while let Some((serial, tokens)) = self.in_flight.drop_draft() {
            let one = self.all.iter_mut().find(|one| one.serial == serial);
            one.into_iter().for_each(|one| {
                one.in_flight -= tokens;
                one.drafted = 0;
            });
        }
    }
}

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

    /// Submits the work that should be in flight while the next tokens are awaited.
    fn submit(&mut self, running: &mut Running<'_>) -> Result<()> {
        self.drop_mistaken(running)?;
        if running.all.iter().any(|one| one.ahead && one.in_flight > 0) {
            // Other work would overwrite the hidden states of these.
            return Ok(());
        }
        self.choose_ahead(running)?;
        self.submit_prompts(running)?;
        match running.all.len() {
            1 => self.submit_alone(running)?,
            _ => self.submit_batches(running)?,
        }
        self.compute_ahead(running)
    }

    /// Submits the second half of a step whose first half was computed ahead. A generation that has
    /// ended since, or goes on with other tokens, is left out.
    fn choose_ahead(&mut self, running: &mut Running<'_>) -> Result<()> {
        let ahead = std::mem::take(&mut running.ahead);
        let seats: Vec<Seat> = ahead.iter().map(|(_, seat)| *seat).collect();
        let (mut rows, mut serials) = (Vec::new(), Vec::new());
        for (row, (serial, _)) in ahead.into_iter().enumerate() {
            if let Some(one) = running.all.iter_mut().find(|one| one.serial == serial) {
                (one.ahead, one.in_flight) = (false, 1);
                one.stats.batch = one.stats.batch.max(seats.len());
                rows.push(row);
                serials.push(serial);
            }
        }
        if !rows.is_empty() {
            let tokens = self.engine.choose(&seats, &rows);
            running.in_flight.push(Work::Steps { serials, tokens, n: 1, ends_prompt: false });
        }
        Ok(())
    }

    /// Computes the tokens in flight before they are known, if all generations have one and a
    /// constraint looks at it. The GPU then has work meanwhile. Without constraints, whole steps are
    /// in flight instead.
    fn compute_ahead(&mut self, running: &mut Running<'_>) -> Result<()> {
        let pace = if running.all.len() == 1 { &self.pace } else { &running.pace };
        // On a slow card the next call would have to wait for this too.
        if running.all.is_empty() || !pace.has_room(1, 1, 1) {
            return Ok(());
        }
        let mut seats = Vec::new();
        for one in &running.all {
            let sequence = self.caches.running(one.sequence)?;
            if !one.computes_ahead(sequence) {
                return Ok(());
            }
            let seat = Seat { slot: one.slot, first: sequence.first(), pos: sequence.filled };
            seats.push((one.serial, seat));
        }
        for one in &mut running.all {
            self.caches.running(one.sequence)?.filled += 1;
            one.ahead = true;
        }
        let in_order: Vec<Seat> = seats.iter().map(|(_, seat)| *seat).collect();
        self.engine.decode_ahead(&in_order);
        running.ahead = seats;
        Ok(())
    }

    /// Submits steps or a draft pass of the only generation, unless its prompt is not computed yet.
    fn submit_alone(&mut self, running: &mut Running<'_>) -> Result<()> {
        let Some(one) = running.all.first_mut() else { return Ok(()) };
        let drafts = one.options.prompt_lookup.unwrap_or(self.traits.prompt_lookup);
        let drafts = drafts && one.can_draft() && self.engine.max_draft_pass(0) > 1;
        let mut drafter = one.drafter.take().unwrap_or_else(|| Drafter::new(drafts));
        if one.decodes || one.in_flight > 0 || self.continues(one)? {
            self.use_sequence(one)?;
            let sequence = self.caches.running(one.sequence)?;
            let mut run = run(&*self.engine, one, sequence, &mut self.pace);
            drafter.submit(&mut run, &mut running.in_flight)?;
        }
        one.drafter = Some(drafter);
        Ok(())
    }

    /// Submits steps of all generations whose prompts are computed, as many as the pace allows.
    fn submit_batches(&mut self, running: &mut Running<'_>) -> Result<()> {
        // A generation that is alone again later drafts from the tokens that it has then.
        running.all.iter_mut().for_each(|one| one.drafter = None);
        loop {
            let batch_steps = running.pace.batch_steps();
            let mut seats = Vec::new();
            let mut n = batch_steps;
            for one in running.all.iter().filter(|one| one.decodes) {
                let sequence = self.caches.running(one.sequence)?;
                let left = one.steps_left(sequence);
                if left > 0 {
                    let seat =
                        Seat { slot: one.slot, first: sequence.first(), pos: sequence.filled };
                    seats.push((one.serial, seat));
                    n = n.min(left);
                }
            }
            let (batches, steps) = running.in_flight.load();
            // Only steps in flight keep a batch out. Chunks of prompts do not, even on a slow card.
            let is_kept_out =
                running.in_flight.chooses() && !running.pace.has_room(batches, steps, n);
            if seats.is_empty() || is_kept_out {
                return Ok(());
            }
            let (serials, seats): (Vec<u64>, Vec<Seat>) = seats.into_iter().unzip();
            let tokens = self.engine.decode_batch(&seats, n);
            for one in running.all.iter_mut().filter(|one| serials.contains(&one.serial)) {
                one.in_flight += n;
                one.stats.batch = one.stats.batch.max(serials.len());
                if let Some(sequence) = self.caches.get(one.sequence) {
                    sequence.filled += n;
                }
            }
            running.in_flight.push(Work::Steps { serials, tokens, n, ends_prompt: false });
        }
    }

    /// Submits a chunk of each prompt that is not computed yet, while few are in flight. Prompts
    /// take turns, so that a short one need not wait for all of a long one. While no tokens are
    /// generated beside them, as many chunks as allowed are in flight.
    fn submit_prompts(&mut self, running: &mut Running<'_>) -> Result<()> {
        let is_alone = running.all.len() == 1;
        loop {
            running.all.sort_by_key(|one| one.prompted);
            let mut submitted = false;
            for one in running.all.iter_mut().filter(|one| !one.decodes && one.in_flight == 0) {
                if running.in_flight.chunks() >= MAX_CHUNKS {
                    return Ok(());
                }
                self.use_sequence(one)?;
                let continues = self.continues(one)?;
                let sequence = self.caches.running(one.sequence)?;
                let (pos, len) = (sequence.filled, sequence.tokens.len());
                if len > sequence.room() {
                    continue;
                }
                if continues {
                    if !is_alone {
                        self.engine.put_token(one.slot, sequence.tokens[pos]);
                        one.decodes = true;
                    }
                    continue;
                }
                let (tokens, end) = self.chunks.next(one.from, pos, len);
                sequence.filled += tokens;
                let ids = &sequence.tokens[pos..pos + tokens];
                if pos + tokens == len {
                    count(&*self.engine, one, sequence);
                    let tokens = self.engine.prefill_and_sample(ids, pos);
                    running.in_flight.push(Work::of_one(one.serial, tokens, 1, true));
                    one.in_flight = 1;
                    one.decodes = true;
                } else {
                    let chunk = Chunk::submit(&*self.engine, ids, pos, end);
                    one.prompted = Some(chunk.submitted);
                    running.in_flight.push(Work::Chunk(chunk));
                    submitted = true;
                }
            }
            if !submitted || running.all.iter().any(|one| one.decodes) {
                return Ok(());
            }
        }
    }

    /// Whether a decode step can continue a generation: all tokens of its sequence but the last are
    /// computed, and the generation chose the last one.
    fn continues(&mut self, one: &Generation<'_>) -> Result<bool> {
        let sequence = self.caches.running(one.sequence)?;
        Ok(one.counted && one.first.is_some() && sequence.filled + 1 == sequence.tokens.len())
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
                    // Steps without a mask would drop the tokens that are chosen with theirs.
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

    /// Drops the draft pass that is to be awaited next, if it does not continue the sequence of its
    /// generation.
    fn drop_mistaken(&mut self, running: &mut Running<'_>) -> Result<()> {
        let Some(Work::Draft { serial, .. }) = running.in_flight.first() else { return Ok(()) };
        let serial = *serial;
        let Some(one) = running.all.iter_mut().find(|one| one.serial == serial) else {
            return Ok(());
        };
        let mut drafter = one.drafter.take().unwrap_or_else(|| Drafter::new(false));
        let sequence = self.caches.running(one.sequence)?;
        let mut run = run(&*self.engine, one, sequence, &mut self.pace);
        drafter.drop_mistaken(&mut run, &mut running.in_flight);
        one.drafter = Some(drafter);
        Ok(())
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

    /// Makes the engine use a generation's sequence and slot.
    fn use_sequence(&mut self, one: &Generation<'_>) -> Result<()> {
        let sequence = self.caches.running(one.sequence)?;
        self.engine.use_cache(sequence.first());
        self.engine.use_slot(one.slot);
        Ok(())
    }
}

/// Counts the tokens of a generation's sequence, if they change the model's logits.
fn count(engine: &dyn Compute, one: &mut Generation<'_>, sequence: &Cached) {
    one.counted = true;
    if one.options.sampling.is_penalized() {
        let (prompt, output) = sequence.tokens.split_at(one.prompt);
        engine.count(prompt, output);
    }
}

/// The progress of a generation.
fn run<'a>(
    model: &'a dyn Compute,
    one: &'a mut Generation<'_>,
    sequence: &'a mut Cached,
    pace: &'a mut Pace,
) -> Run<'a> {
    let (most, most_drafted) = (one.most_filled(sequence), one.most_drafted(sequence));
    Run {
        model,
        serial: one.serial,
        prompt: one.prompt,
        most,
        most_drafted,
        foresight: Foresight {
            constraint: one.constraint.as_deref().filter(|_| !one.is_free),
            mask: one.mask.as_ref().or(one.guess.allowed()),
            masked: one.masked,
            slot: one.slot,
            drafted: &mut one.drafted,
        },
        tokens: &sequence.tokens,
        filled: &mut sequence.filled,
        pace,
        stats: &mut one.stats,
        last_is_on_gpu: &mut one.decodes,
        awaited: &mut one.in_flight,
    }
}
