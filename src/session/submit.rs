//! Submits the work of the calls that run: chunks of prompts, steps, draft passes.
//!
//! One call alone has its own way to submit steps, because it drafts, and because a step of one sequence has
//! kernels of its own that read fewer bytes. Several calls share steps.

use super::caches::Cached;
use super::chunks::Chunk;
use super::draft::Drafter;
use super::generation::Generation;
use super::loaded::Session;
use super::running::{Running, run};
use super::work::Work;
use crate::compute::{Compute, Seat};
use crate::error::Result;

/// The most chunks of prompts in flight: one is prepared while another is computed.
const MAX_CHUNKS: usize = 2;

impl Session {
    /// Submits the work that should be in flight while the next tokens are awaited.
    pub(super) fn submit(&mut self, running: &mut Running<'_>) -> Result<()> {
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
        // Not on a slow card: a call that comes now would wait for this step too.
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

    /// Submits steps for all generations whose prompts are computed. The pace says how many steps may be
    /// in flight.
    fn submit_batches(&mut self, running: &mut Running<'_>) -> Result<()> {
        // A drafter knows the tokens so far. When a generation runs alone again, it gets a new one.
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
            // The next steps wait for steps in flight, but not for chunks of prompts.
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
                let (tokens, all) = self.chunks.next(one.from, pos, len);
                sequence.filled += tokens;
                let ids = &sequence.tokens[pos..pos + tokens];
                if pos + tokens == len {
                    count(&*self.engine, one, sequence);
                    let tokens = self.engine.prefill_and_sample(ids, pos, all.start);
                    running.in_flight.push(Work::of_one(one.serial, tokens, 1, true));
                    one.in_flight = 1;
                    one.decodes = true;
                } else {
                    let chunk = Chunk::submit(&*self.engine, ids, pos, all);
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

    /// Makes the engine use a generation's sequence and slot.
    pub(super) fn use_sequence(&mut self, one: &Generation<'_>) -> Result<()> {
        let sequence = self.caches.running(one.sequence)?;
        self.engine.use_cache(sequence.first());
        self.engine.use_slot(one.slot);
        Ok(())
    }
}

/// Counts the tokens of a generation's sequence, if they change the model's logits.
pub(super) fn count(engine: &dyn Compute, one: &mut Generation<'_>, sequence: &Cached) {
    one.counted = true;
    if one.options.sampling.is_penalized() {
        let (prompt, output) = sequence.tokens.split_at(one.prompt);
        engine.count(prompt, output);
    }
}
