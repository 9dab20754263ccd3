//! The progress of a generation, which steps and drafts share.

use super::foresight::Foresight;
use super::pace::Pace;
use super::stats::Stats;
use super::work::{InFlight, Work};
use crate::compute::Steps;

/// The progress of a generation that runs alone.
pub(super) struct Run<'a> {
    pub(super) model: &'a dyn Steps,
    pub(super) serial: u64,
    /// The prompt and the tokens after it.
    pub(super) tokens: &'a [u32],
    /// How many of `tokens` are the prompt.
    pub(super) prompt: usize,
    /// Positions of the KV cache that are filled, or that the steps in flight will fill.
    pub(super) filled: &'a mut usize,
    /// Positions that may be filled.
    pub(super) most: usize,
    /// Positions that draft passes may fill.
    pub(super) most_drafted: usize,
    pub(super) foresight: Foresight<'a>,
    pub(super) pace: &'a mut Pace,
    pub(super) stats: &'a mut Stats,
    /// Whether the token that the next step computes is on the GPU, or will be when the steps in
    /// flight are done. After a draft pass it is not.
    pub(super) last_is_on_gpu: &'a mut bool,
    /// Tokens that are in flight.
    pub(super) awaited: &'a mut usize,
}

impl Run<'_> {
    /// Tokens that may still be submitted.
    pub(super) fn left(&self) -> usize {
        self.most.saturating_sub(*self.filled)
    }

    /// Tokens of draft passes that may still be submitted.
    pub(super) fn left_of_drafts(&self) -> usize {
        self.most_drafted.saturating_sub(*self.filled)
    }

    /// Submits steps, at most `batch_steps` at a time, until the pace allows no more or no more
    /// tokens are wanted.
    pub(super) fn fill(&mut self, in_flight: &mut InFlight, batch_steps: usize) {
        while self.left() > 0 {
            let (pos, n) = (*self.filled, batch_steps.min(self.left()));
            let (batches, steps) = in_flight.load();
            let (tokens, n) = match self.tokens.last() {
                // A pass behind the steps in flight was dropped. These still choose the last token.
                _ if !*self.last_is_on_gpu && *self.awaited > 0 => return,
                Some(&last) if !*self.last_is_on_gpu => {
                    (self.model.prefill_and_sample(&[last], pos, pos), 1)
                }
                _ if in_flight.chooses() && !self.pace.has_room(batches, steps, n) => return,
                _ => (self.model.decode_and_sample(pos, n), n),
            };
            *self.last_is_on_gpu = true;
            *self.filled += n;
            *self.awaited += n;
            in_flight.push(Work::of_one(self.serial, tokens, n, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use pollster::block_on;
    use web_time::Duration;

    use super::super::fake::{Alone, Call, Fake};

    /// The calls of a generation of `left` tokens. Again and again it fills the work in flight with
    /// batches of `batch_steps`, and waits for one batch.
    fn calls(step: Duration, batch_steps: usize, left: usize) -> Vec<Call> {
        let fake = Fake::new(8, |sequence| sequence.len() as u32);
        let mut alone = Alone::new(&fake, &[1, 2, 3], (left, step, false));
        block_on(alone.take());
        while alone.in_flight.load().0 > 0 || alone.run().0.left() > 0 {
            let (mut run, in_flight, _) = alone.run();
            run.fill(in_flight, batch_steps);
            block_on(alone.take());
        }
        // Token n says how long the sequence before it was.
        let tokens: Vec<u32> = (0..left).filter_map(|_| block_on(alone.next())).collect();
        assert_eq!(tokens, (3..3 + left as u32).collect::<Vec<_>>());
        assert_eq!((block_on(alone.next()), alone.filled), (None, 2 + left));
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
        let fake = Fake::new(8, |sequence| sequence.len() as u32);
        let mut alone = Alone::new(&fake, &[1, 2, 3], (5, Duration::from_millis(20), false));
        block_on(alone.take());
        alone.tokens.push(3);
        (alone.last_is_on_gpu, alone.awaited) = (false, 0);
        let (mut run, in_flight, _) = alone.run();
        run.fill(in_flight, 1);
        // The pass of the token itself, and steps behind it. Five tokens are wanted, and the first
        // is here.
        assert_eq!(in_flight.load(), (4, 4));
        let submitted = [Call::Prefill(1), Call::Decode(1), Call::Decode(1), Call::Decode(1)];
        assert_eq!(fake.calls()[2..], submitted);
        assert!(alone.last_is_on_gpu);
    }
}
