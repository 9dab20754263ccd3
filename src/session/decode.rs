//! The tokens of a generation, one after another: from decode steps, or from draft passes.

use std::collections::VecDeque;

use super::draft::Drafter;
use super::pipeline::Pipeline;
use super::run::Run;
use super::stats::Stats;
use crate::compute::Choice;
use crate::error::Result;

/// Where the next token comes from.
pub(super) struct Decoder<'a> {
    run: Run<'a>,
    pipeline: Pipeline,
    drafter: Drafter,
    /// Tokens that came together with others and were not asked for yet.
    ready: VecDeque<Choice>,
}

impl<'a> Decoder<'a> {
    /// Submits what is left of the prompt, which chooses the first token.
    pub(super) fn new(mut run: Run<'a>, prompt_lookup: bool) -> Self {
        let drafter = Drafter::new(&run, prompt_lookup);
        let pipeline = Pipeline::new(&mut run);
        Self { run, pipeline, drafter, ready: VecDeque::new() }
    }

    /// The next token; `None` when there are as many as wanted. It may be outside the vocabulary
    /// if no logit was a number.
    pub(super) async fn next(&mut self) -> Result<Option<Choice>> {
        if self.ready.is_empty() && self.pipeline.is_empty() {
            self.ready.extend(self.drafter.draft(&mut self.run).await?);
        }
        if self.ready.is_empty() {
            self.submit();
            self.ready.extend(self.pipeline.take(&mut self.run).await?);
        }
        let Some(choice) = self.ready.pop_front() else { return Ok(None) };
        self.run.tokens.push(choice.id);
        self.drafter.observe(self.run.tokens);
        Ok(Some(choice))
    }

    /// The next token of those in flight, or `None`: nothing more is submitted.
    pub(super) async fn next_in_flight(&mut self) -> Result<Option<Choice>> {
        if self.ready.is_empty() {
            self.ready.extend(self.pipeline.take(&mut self.run).await?);
        }
        let Some(choice) = self.ready.pop_front() else { return Ok(None) };
        self.run.tokens.push(choice.id);
        Ok(Some(choice))
    }

    /// Submits what is to be in flight while the next token is awaited.
    fn submit(&mut self) {
        if self.drafter.is_confident() && !self.pipeline.is_empty() {
            // A draft waits for all steps in flight: submit no more of them.
            let (batches, steps) = (self.pipeline.batches(), self.pipeline.steps());
            self.drafter.submit_behind_steps(&mut self.run, batches, steps);
        } else if !self.drafter.has_pass_ahead() {
            let quiet = self.drafter.is_quiet();
            let batch_steps = if quiet { self.run.pace.batch_steps() } else { 1 };
            self.pipeline.fill(&mut self.run, batch_steps);
        }
    }

    /// The statistics so far.
    pub(super) fn stats(&mut self) -> &mut Stats {
        &mut self.run.stats
    }

    /// The statistics, when no more tokens are wanted.
    pub(super) fn finish(self) -> Stats {
        let mut stats = self.run.stats;
        stats.unused_tokens =
            self.pipeline.steps() + self.ready.len() + self.drafter.tokens_ahead();
        stats
    }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;
    use web_time::Duration;

    use super::super::fake::{Call, Fake, Setup};
    use super::*;

    /// The tokens of a generation that is read to its end, its statistics, and the calls it made.
    fn generate(
        next: fn(&[u32]) -> u32,
        prompt: &[u32],
        (limit, step, lookup): (usize, Duration, bool),
    ) -> (Vec<u32>, Stats, Vec<Call>) {
        let fake = Fake::new(8, next);
        let mut setup = Setup::new(step);
        let mut decoder = Decoder::new(setup.run(&fake, prompt, limit), lookup);
        let mut tokens = Vec::new();
        while let Some(choice) = block_on(decoder.next()).unwrap() {
            tokens.push(choice.id);
        }
        assert_eq!(*decoder.run.filled, prompt.len() + limit - 1);
        assert_eq!(decoder.run.tokens[prompt.len()..], tokens);
        let stats = decoder.finish();
        fake.assert_computed(&[prompt, &tokens[..limit - 1]].concat());
        (tokens, stats, fake.calls())
    }

    /// Texts that repeat themselves in different ways.
    const TEXTS: [fn(&[u32]) -> u32; 7] = [
        |_| 7,
        |text| text[text.len() - 1] + 1,
        |text| text.len() as u32 % 5,
        // A surprise in every 13th, 20th and 7th token.
        |text| if text.len() % 13 == 0 { 1000 + text.len() as u32 } else { text.len() as u32 % 5 },
        |text| if text.len() % 20 == 0 { 99 } else { text.len() as u32 % 9 },
        |text| if text.len() % 7 == 0 { text.len() as u32 / 14 } else { text.len() as u32 % 3 },
        // Two values that follow each other without a period.
        |text| (text.len().wrapping_mul(0x9e37_79b9) >> 7) as u32 & 1,
    ];

    #[test]
    fn neither_drafts_nor_pace_change_the_tokens() {
        for (n, next) in TEXTS.into_iter().enumerate() {
            let prompt: Vec<u32> = (0..9).chain(0..9).chain(0..3).collect();
            let mut text = prompt.clone();
            (0..200).for_each(|_| text.push(next(&text)));
            for limit in [1, 2, 3, 8, 9, 61, 200] {
                for ms in [1, 3, 20, 1000] {
                    for lookup in [false, true] {
                        let options = (limit, Duration::from_millis(ms), lookup);
                        let (tokens, stats, _) = generate(next, &prompt, options);
                        let expected = &text[prompt.len()..][..limit];
                        assert_eq!(tokens, expected, "text {n}, {limit} at {ms} ms, {lookup}");
                        assert!(stats.accepted_tokens <= stats.drafted_tokens, "{stats:?}");
                        assert!(lookup || stats.draft_passes == 0, "{stats:?}");
                        assert_eq!(stats.unused_tokens, 0, "{stats:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_that_repeats_itself_takes_fewer_steps() {
        let periodic: fn(&[u32]) -> u32 = |text| text.len() as u32 % 5;
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
    fn a_text_without_repetition_is_never_drafted() {
        let counting: fn(&[u32]) -> u32 = |text| text[text.len() - 1] + 1;
        let options = |lookup| (100, Duration::from_millis(1), lookup);
        let (_, stats, calls) = generate(counting, &[1], options(true));
        assert_eq!((stats.draft_passes, stats.drafted_tokens), (0, 0));
        // Nor does it cost batches, once lookup has been quiet for a while.
        assert!(calls.contains(&Call::Decode(4)), "{calls:?}");
    }

    #[test]
    fn what_is_computed_and_not_read_is_counted_as_unused() {
        // All drafts of the last text are right: every submitted token comes.
        for (next, lookup) in [(TEXTS[1], false), (TEXTS[1], true), (TEXTS[0], true)] {
            for read in 1..40 {
                let fake = Fake::new(8, next);
                let mut setup = Setup::new(Duration::from_millis(1));
                let mut decoder = Decoder::new(setup.run(&fake, &[7; 9], 1000), lookup);
                for _ in 0..read {
                    block_on(decoder.next()).unwrap();
                }
                let unused = decoder.finish().unused_tokens;
                let calls = fake.calls();
                let submitted: usize = calls.iter().map(submitted).sum();
                assert_eq!(unused, submitted - read, "{read} tokens: {calls:?}");
            }
        }
    }

    /// Tokens that a call computes.
    fn submitted(call: &Call) -> usize {
        match call {
            Call::Prefill(_) => 1,
            Call::Decode(tokens) | Call::Draft(tokens) => *tokens,
            Call::Tokens(_) | Call::Choices(_) => 0,
        }
    }
}
