//! Decode steps in flight: each takes the token that the step before it chose from GPU memory, so
//! that several can be submitted before the first of their tokens is here.

use std::collections::VecDeque;

use web_time::Instant;

use super::run::Run;
use crate::compute::{Choice, Pending};
use crate::error::Result;

/// The batches in flight, the oldest first.
pub(super) struct Pipeline {
    batches: VecDeque<Batch>,
}

/// Steps that were submitted together.
struct Batch {
    steps: usize,
    tokens: Pending<Vec<Choice>>,
}

impl Pipeline {
    /// Submits the prompt from the first position that is not filled. This step chooses the
    /// generation's first token.
    pub(super) fn new(run: &mut Run<'_>) -> Self {
        let rest = &run.tokens[*run.filled..];
        let first = run.model.prefill_and_sample(rest, *run.filled);
        *run.filled = run.tokens.len();
        run.left -= 1;
        run.last_is_on_gpu = true;
        run.pace.pause();
        Self { batches: VecDeque::from([Batch { steps: 1, tokens: first }]) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Batches in flight.
    pub(super) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Steps in flight.
    pub(super) fn steps(&self) -> usize {
        self.batches.iter().map(|batch| batch.steps).sum()
    }

    /// Submits batches of at most `batch_steps` until as many are in flight as the pace allows, or
    /// no more tokens are wanted.
    pub(super) fn fill(&mut self, run: &mut Run<'_>, batch_steps: usize) {
        while run.left > 0 {
            let (pos, steps) = (*run.filled, batch_steps.min(run.left));
            let batch = match run.tokens.last() {
                Some(&last) if !run.last_is_on_gpu => {
                    let tokens = run.model.prefill_and_sample(&[last], pos);
                    Batch { steps: 1, tokens }
                }
                _ if !run.pace.has_room(self.batches(), self.steps(), steps) => break,
                _ => Batch { steps, tokens: run.model.decode_and_sample(pos, steps) },
            };
            run.last_is_on_gpu = true;
            *run.filled += batch.steps;
            run.left -= batch.steps;
            self.batches.push_back(batch);
        }
    }

    /// Waits for the tokens of the oldest batch; none if nothing is in flight.
    pub(super) async fn take(&mut self, run: &mut Run<'_>) -> Result<Vec<Choice>> {
        let Some(Batch { steps, tokens }) = self.batches.pop_front() else {
            return Ok(Vec::new());
        };
        let tokens = tokens.take().await?;
        run.pace.came(Instant::now(), steps);
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use pollster::block_on;
    use web_time::Duration;

    use super::super::fake::{Call, Fake, Setup};
    use super::*;

    /// The calls of a pipeline that is filled with `batch_steps` and emptied by one batch, again
    /// and again, until `left` tokens are there.
    fn calls(step: Duration, batch_steps: usize, left: usize) -> Vec<Call> {
        let fake = Fake::new(8, |text| text.len() as u32);
        let mut setup = Setup::new(step);
        let mut run = setup.run(&fake, &[1, 2, 3], left);
        let mut pipeline = Pipeline::new(&mut run);
        let mut tokens = block_on(pipeline.take(&mut run)).unwrap();
        while tokens.len() < left {
            pipeline.fill(&mut run, batch_steps);
            tokens.extend(block_on(pipeline.take(&mut run)).unwrap());
        }
        // Token n is the length of the text before it.
        assert_eq!(tokens, (3..3 + left as u32).map(Choice::from).collect::<Vec<_>>());
        assert!(pipeline.is_empty() && block_on(pipeline.take(&mut run)).unwrap().is_empty());
        assert_eq!((run.left, *run.filled), (0, 2 + left));
        fake.calls()
    }

    #[test]
    fn six_batches_are_in_flight_where_steps_are_fast() {
        let calls = calls(Duration::from_millis(1), 4, 41);
        let mut expected = vec![Call::Prefill(3), Call::Tokens(1)];
        expected.extend(repeat_n(Call::Decode(4), 6));
        for _ in 0..4 {
            expected.extend([Call::Tokens(4), Call::Decode(4)]);
        }
        expected.extend(repeat_n(Call::Tokens(4), 6));
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_step_is_submitted_when_the_one_before_is_done_where_steps_are_slow() {
        let calls = calls(Duration::from_secs(1), 1, 3);
        let one = [Call::Decode(1), Call::Tokens(1)];
        assert_eq!(calls, [[Call::Prefill(3), Call::Tokens(1)], one, one].concat());
    }

    #[test]
    fn the_last_batch_has_the_tokens_that_are_left() {
        let calls = calls(Duration::from_millis(1), 4, 7);
        let decoded: Vec<_> = calls.iter().filter(|call| matches!(call, Call::Decode(_))).collect();
        assert_eq!(decoded, [&Call::Decode(4), &Call::Decode(2)]);
    }

    #[test]
    fn after_a_draft_pass_the_last_token_comes_from_the_cpu() {
        let fake = Fake::new(8, |text| text.len() as u32);
        let mut setup = Setup::new(Duration::from_millis(20));
        let mut run = setup.run(&fake, &[1, 2, 3], 5);
        let mut pipeline = Pipeline::new(&mut run);
        let first = block_on(pipeline.take(&mut run)).unwrap();
        run.tokens.extend(first.iter().map(|choice| choice.id));
        run.last_is_on_gpu = false;
        pipeline.fill(&mut run, 1);
        // The token itself, and steps behind it: five tokens are wanted, and the first is here.
        assert_eq!((pipeline.batches(), pipeline.steps()), (4, 4));
        let submitted = [Call::Prefill(1), Call::Decode(1), Call::Decode(1), Call::Decode(1)];
        assert_eq!(fake.calls()[2..], submitted);
        assert!(run.last_is_on_gpu);
    }
}
