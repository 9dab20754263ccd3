//! Draft passes: steps that check several drafted tokens at once.

use super::foresight::Foresight;
use super::lookup::{self, Lookup, STEPS_PER_PASS};
use super::run::Run;
use super::work::{InFlight, Work};
use crate::compute::Choice;
use crate::error::Result;
use crate::sampling::Mask;

/// The most steps in flight behind which a draft pass is submitted. Behind more steps a draft is
/// probably wrong.
const MAX_STEPS_BEFORE_DRAFT: usize = 4;

/// Decides when to draft in a generation that runs alone, and which drafted tokens to accept.
pub(super) struct Drafter {
    /// `None`: never draft.
    lookup: Option<Lookup>,
}

impl Drafter {
    /// Drafts if `enabled`.
    pub(super) fn new(enabled: bool) -> Self {
        Self { lookup: enabled.then(Lookup::default) }
    }

    /// Must be called after each token; `tokens` end with it.
    pub(super) fn observe(&mut self, tokens: &[u32]) {
        if let Some(lookup) = &mut self.lookup {
            lookup.observe(tokens);
        }
    }

    /// Must be called when tokens were put in; `tokens` end with them.
    pub(super) fn inserted(&mut self, tokens: &[u32]) {
        if let Some(lookup) = &mut self.lookup {
            lookup.inserted(tokens);
        }
    }

    /// Submits the steps or the draft pass that should be in flight while the next tokens are
    /// awaited.
    ///
    /// Errors: `internal` for masks that the engine refuses.
    pub(super) fn submit(&mut self, run: &mut Run<'_>, in_flight: &mut InFlight) -> Result<()> {
        let is_confident = self.lookup.as_ref().is_some_and(Lookup::is_confident);
        if let Some(Work::Draft { ids, .. }) = in_flight.first() {
            let ids = ids.clone();
            return self.submit_behind_pass(run, in_flight, &ids);
        }
        if is_confident && in_flight.first().is_some() {
            // A draft waits for all steps in flight, so no more of them are submitted.
            return submit_behind_steps(run, in_flight);
        }
        if is_confident && self.submit_pass(run, in_flight)? {
            return Ok(());
        }
        if !in_flight.has_draft() {
            // A draft would wait for all steps in flight. So if one is likely, only few steps are
            // submitted.
            let quiet = self.lookup.as_ref().is_none_or(Lookup::is_quiet);
            let batch_steps = if quiet { run.pace.batch_steps() } else { 1 };
            run.fill(in_flight, batch_steps);
        }
        Ok(())
    }

    /// Drops the oldest work if it is a draft pass with a wrong first token, which the model did
    /// not choose.
    pub(super) fn drop_mistaken(&mut self, run: &mut Run<'_>, in_flight: &mut InFlight) {
        if let Some(Work::Draft { ids, .. }) = in_flight.first()
            && run.tokens.last() != ids.first()
        {
            drop_next(run, in_flight);
            run.pace.pause();
            self.record_pass(0, false);
        }
    }

    /// Takes the tokens that a pass of `ids` chose. Gives the drafted tokens that the model
    /// accepts, and one more token, which it chose after them.
    pub(super) fn accepted(
        &mut self,
        run: &mut Run<'_>,
        in_flight: &mut InFlight,
        ids: &[u32],
        mut chosen: Vec<Choice>,
    ) -> Vec<Choice> {
        let drafted = &ids[1..];
        let accepted = chosen.iter().zip(drafted).take_while(|(a, b)| a.id == **b).count();
        let all = accepted == drafted.len();
        if !all {
            // If there is a pass behind this one, it began with tokens that were not accepted.
            drop_next(run, in_flight);
        }
        let right = &ids[..=accepted];
        let sequence = [run.tokens, &right[1..]].concat();
        let (prompt, output) = sequence.split_at(run.prompt);
        run.model.recount(right, prompt, output);
        chosen.truncate(accepted + 1);
        *run.filled += accepted + 1;
        let useless = ids.len() - chosen.len();
        *run.awaited -= useless;
        *run.foresight.drafted = run.foresight.drafted.saturating_sub(useless);
        run.pace.pause();
        run.stats.accepted_tokens += accepted;
        self.record_pass(accepted + 1, all);
        chosen
    }

    fn record_pass(&mut self, tokens: usize, whole: bool) {
        if let Some(lookup) = &mut self.lookup {
            lookup.record_pass(tokens, whole);
        }
    }

    /// Submits a pass, if something can be drafted and nothing is in flight.
    fn submit_pass(&self, run: &mut Run<'_>, in_flight: &mut InFlight) -> Result<bool> {
        let Some(&last) = run.tokens.last() else { return Ok(false) };
        let max_drafted = max_pass(run, *run.filled, 0).saturating_sub(1);
        let draft = lookup::draft(run.tokens, max_drafted);
        let (n, masks) = run.foresight.look(&draft);
        if n == 0 {
            return Ok(false);
        }
        let ids = [&[last], &draft[..n]].concat();
        submit(run, in_flight, ids.clone(), *run.filled, &[], &masks)?;
        self.submit_behind_pass(run, in_flight, &ids)?;
        Ok(true)
    }

    /// Submits the next pass behind that of `before`, if that one will probably be accepted whole.
    /// Otherwise the GPU would have nothing to do until its result is here.
    fn submit_behind_pass(
        &self,
        run: &mut Run<'_>,
        in_flight: &mut InFlight,
        before: &[u32],
    ) -> Result<()> {
        let last_was_accepted = self.lookup.as_ref().is_some_and(Lookup::accepts_whole_passes);
        if in_flight.load().0 == 1
            && last_was_accepted
            && run.pace.has_room(1, STEPS_PER_PASS, STEPS_PER_PASS)
        {
            let pos = *run.filled + before.len();
            let expected = [run.tokens, &before[1..]].concat();
            let mut ids = lookup::draft(&expected, max_pass(run, pos, before.len()));
            let (n, masks) = run.foresight.look(&[&before[1..], &ids].concat());
            ids.truncate((n + 1).saturating_sub(before.len()));
            if ids.len() > 1 {
                let masks = masks.get(before.len()..).unwrap_or_default();
                submit(run, in_flight, ids, pos, before, masks)?;
            }
        }
        Ok(())
    }
}

/// Submits a pass behind the steps in flight, if they are few and lookup can draft the tokens that
/// they will choose.
fn submit_behind_steps(run: &mut Run<'_>, in_flight: &mut InFlight) -> Result<()> {
    let (batches, steps) = in_flight.load();
    let has_room = run.pace.has_room(batches, steps, STEPS_PER_PASS);
    let awaited = *run.awaited;
    if in_flight.has_draft() || !(1..=MAX_STEPS_BEFORE_DRAFT).contains(&awaited) || !has_room {
        return Ok(());
    }
    let pos = *run.filled;
    let max_tokens = max_pass(run, pos, 0);
    let expected = lookup::draft(run.tokens, awaited - 1 + max_tokens);
    let (n, masks) = run.foresight.look(&expected);
    if n > awaited {
        let masks = masks.get(awaited..).unwrap_or_default();
        submit(run, in_flight, expected[awaited - 1..n].to_vec(), pos, &[], masks)?;
    }
    Ok(())
}

/// Drops the next pass in flight, if there is one. It belongs to this generation, because only a
/// generation that runs alone drafts.
fn drop_next(run: &mut Run<'_>, in_flight: &mut InFlight) {
    let dropped = in_flight.drop_draft().filter(|(serial, _)| *serial == run.serial);
    let dropped = dropped.map_or(0, |(_, tokens)| tokens);
    *run.awaited -= dropped;
    *run.foresight.drafted = run.foresight.drafted.saturating_sub(dropped);
}

/// The most tokens of a pass at `pos`, if `before` tokens of a pass before it are not accepted yet.
fn max_pass(run: &Run<'_>, pos: usize, before: usize) -> usize {
    run.model.max_draft_pass(pos).min(run.left_of_drafts().saturating_sub(before))
}

/// Submits a pass. `uncertain` are the tokens of the pass in flight before it, if there is one. After
/// each of its tokens the engine chooses by one of `masks`, if it does so at all.
fn submit(
    run: &mut Run<'_>,
    in_flight: &mut InFlight,
    ids: Vec<u32>,
    pos: usize,
    uncertain: &[u32],
    masks: &[Mask],
) -> Result<()> {
    let Foresight { masked, slot, .. } = run.foresight;
    if masked {
        run.model.write_masks(slot, masks)?;
    }
    if run.foresight.is_held() {
        *run.foresight.drafted += ids.len();
    }
    run.stats.draft_passes += 1;
    run.stats.drafted_tokens += ids.len() - 1;
    *run.awaited += ids.len();
    *run.last_is_on_gpu = false;
    let choices = run.model.decode_and_choose(&ids, pos, uncertain);
    in_flight.push(Work::Draft { serial: run.serial, ids, choices });
    Ok(())
}

#[cfg(test)]
mod tests {
    use pollster::block_on;
    use web_time::Duration;

    use super::super::fake::{Alone, Call, Fake};
    use super::super::stats::Stats;

    /// The tokens of a generation that is read to its end, its statistics, and the calls that it
    /// made.
    fn generate(
        next: fn(&[u32]) -> u32,
        prompt: &[u32],
        (limit, step, lookup): (usize, Duration, bool),
    ) -> (Vec<u32>, Stats, Vec<Call>) {
        let fake = Fake::new(8, next);
        let mut alone = Alone::new(&fake, prompt, (limit, step, lookup));
        let mut tokens = Vec::new();
        while let Some(id) = block_on(alone.next()) {
            tokens.push(id);
        }
        assert_eq!(alone.filled, prompt.len() + limit - 1);
        assert_eq!(alone.tokens[prompt.len()..], tokens);
        let stats = Stats { unused_tokens: alone.awaited, ..alone.stats };
        fake.assert_computed(&[prompt, &tokens[..limit - 1]].concat());
        (tokens, stats, fake.calls())
    }

    /// Sequences that repeat themselves in different ways.
    const SEQUENCES: [fn(&[u32]) -> u32; 7] = [
        |_| 7,
        |sequence| sequence[sequence.len() - 1] + 1,
        |sequence| sequence.len() as u32 % 5,
        // Every 13th, 20th or 7th token is a surprise.
        |sequence| {
            if sequence.len() % 13 == 0 {
                1000 + sequence.len() as u32
            } else {
                sequence.len() as u32 % 5
            }
        },
        |sequence| if sequence.len() % 20 == 0 { 99 } else { sequence.len() as u32 % 9 },
        |sequence| {
            if sequence.len() % 7 == 0 {
                sequence.len() as u32 / 14
            } else {
                sequence.len() as u32 % 3
            }
        },
        // Two values that follow each other without a period.
        |sequence| (sequence.len().wrapping_mul(0x9e37_79b9) >> 7) as u32 & 1,
    ];

    #[test]
    fn neither_drafts_nor_pace_change_the_tokens() {
        for (n, next) in SEQUENCES.into_iter().enumerate() {
            let prompt: Vec<u32> = (0..9).chain(0..9).chain(0..3).collect();
            let mut sequence = prompt.clone();
            (0..200).for_each(|_| sequence.push(next(&sequence)));
            for limit in [1, 2, 3, 8, 9, 61, 200] {
                for ms in [1, 3, 20, 1000] {
                    for lookup in [false, true] {
                        let options = (limit, Duration::from_millis(ms), lookup);
                        let (tokens, stats, _) = generate(next, &prompt, options);
                        let expected = &sequence[prompt.len()..][..limit];
                        assert_eq!(tokens, expected, "sequence {n}, {limit} at {ms} ms, {lookup}");
                        assert!(stats.accepted_tokens <= stats.drafted_tokens, "{stats:?}");
                        assert!(lookup || stats.draft_passes == 0, "{stats:?}");
                        assert_eq!(stats.unused_tokens, 0, "{stats:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_sequence_that_repeats_itself_takes_fewer_steps() {
        let periodic: fn(&[u32]) -> u32 = |sequence| sequence.len() as u32 % 5;
        let options = |lookup| (100, Duration::from_millis(20), lookup);
        let (_, stats, calls) = generate(periodic, &[1, 2], options(true));
        assert_eq!(stats.accepted_tokens, stats.drafted_tokens);
        assert!(stats.accepted_tokens > 60, "{stats:?}");
        let steps = |calls: &[Call]| -> usize {
            calls
                .iter()
                .map(|call| match call {
                    Call::Prefill(_) | Call::Draft(_) => 1,
                    Call::Decode(steps) => *steps,
                    Call::Tokens(_) | Call::Choices(_) => 0,
                })
                .sum()
        };
        assert!(steps(&calls) < 40, "{calls:?}");
        let (_, _, calls) = generate(periodic, &[1, 2], options(false));
        assert_eq!(steps(&calls), 100);
    }

    #[test]
    fn a_sequence_without_repetition_is_never_drafted() {
        let counting: fn(&[u32]) -> u32 = |sequence| sequence[sequence.len() - 1] + 1;
        let options = |lookup| (100, Duration::from_millis(1), lookup);
        let (_, stats, calls) = generate(counting, &[1], options(true));
        assert_eq!((stats.draft_passes, stats.drafted_tokens), (0, 0));
        // Lookup does not keep steps from being submitted in batches either, once it has been quiet
        // for a while.
        assert!(calls.contains(&Call::Decode(4)), "{calls:?}");
    }

    #[test]
    fn what_is_computed_and_not_read_is_counted_as_unused() {
        // All drafts of the last sequence are right, so every submitted token comes.
        for (next, lookup) in [(SEQUENCES[1], false), (SEQUENCES[1], true), (SEQUENCES[0], true)] {
            for read in 1..40 {
                let fake = Fake::new(8, next);
                let options = (1000, Duration::from_millis(1), lookup);
                let mut alone = Alone::new(&fake, &[7; 9], options);
                for _ in 0..read {
                    block_on(alone.next());
                }
                let unused = alone.awaited;
                let calls = fake.calls();
                let submitted: usize = calls.iter().map(submitted).sum();
                assert_eq!(unused, submitted - read, "{read} tokens: {calls:?}");
            }
        }
    }

    /// The number of tokens that a call computes.
    fn submitted(call: &Call) -> usize {
        match call {
            Call::Prefill(_) => 1,
            Call::Decode(tokens) | Call::Draft(tokens) => *tokens,
            Call::Tokens(_) | Call::Choices(_) => 0,
        }
    }
}
