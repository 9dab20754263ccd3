//! How many steps may be in flight, and how many of them are submitted together.

use std::collections::VecDeque;

use web_time::{Duration, Instant};

use crate::compute::Depth;

/// The longest time for the steps of a batch. Their tokens arrive together, and this should not be
/// visible: a screen of 120 Hz shows changes every 8 ms. Between two submissions a GPU idles for 20
/// to 40 us, which is up to a twenty-fifth of a step on a fast card.
const MAX_BATCH_TIME: Duration = Duration::from_millis(8);

/// The longest time for all steps in flight. After an abort the next generation waits for them, and
/// it should answer within 100 ms. If a card suddenly becomes slow, it still has to finish the
/// steps that were submitted while it was fast.
const MAX_TIME: Duration = Duration::from_millis(80);

/// The way to the GPU and back takes less, with a step. Firefox looks for results every 4 ms.
const MAX_WAIT: Duration = Duration::from_millis(16);

/// The recent speed of the card with this model, and the number of steps in flight that follows
/// from it. It is kept from one generation to the next.
pub(super) struct Pace {
    max_batches: usize,
    max_batch_steps: usize,
    /// When the last tokens came; `None` if the time until the next ones will not be the time of a
    /// step.
    came: Option<Instant>,
    /// The last few times from one token to the next. If several tokens were ready when they were
    /// asked for, all but one of them seem to take no time.
    took: VecDeque<Duration>,
    /// Used instead of the measured times.
    supposed: Option<Duration>,
}

impl Pace {
    pub(super) fn new(depth: Depth) -> Self {
        let Depth { max_batches, max_batch_steps } = depth;
        Self { max_batches, max_batch_steps, came: None, took: VecDeque::new(), supposed: None }
    }

    /// For steps of another kind. It knows no times yet, but takes over a supposed time.
    pub(super) fn like(other: &Self, depth: Depth) -> Self {
        Self { supposed: other.supposed, ..Self::new(depth) }
    }

    /// Supposes from now on that a step takes `time`.
    pub(super) fn suppose(&mut self, time: Duration) {
        self.supposed = Some(time);
    }

    /// Steps to submit together. There is one until it is known how long a step takes, and until
    /// the first token is here. The first token should not wait until a whole batch has been
    /// prepared.
    ///
    /// The mean decides. In a browser tokens come late and early in turn, while the card takes the
    /// same time for each.
    pub(super) fn batch_steps(&self) -> usize {
        if self.came.is_none() {
            return 1;
        }
        within(MAX_BATCH_TIME, self.mean(), self.max_batch_steps)
    }

    /// Whether the way to the GPU and back may take a great part of the time of a step.
    pub(super) fn is_fast(&self) -> bool {
        self.mean().is_some_and(|mean| mean <= MAX_WAIT)
    }

    fn mean(&self) -> Option<Duration> {
        let mean = self.took.iter().sum::<Duration>().checked_div(self.took.len() as u32);
        self.supposed.or(mean)
    }

    /// Whether `more` steps may be submitted while `steps` are in flight in `batches`.
    pub(super) fn has_room(&self, batches: usize, steps: usize, more: usize) -> bool {
        let slowest = self.supposed.or_else(|| self.took.iter().max().copied());
        let max_steps = within(MAX_TIME, slowest, self.max_batches * self.max_batch_steps);
        batches < self.max_batches && steps + more <= max_steps
    }

    /// Must be called when the tokens of a batch of `steps` came.
    pub(super) fn came(&mut self, now: Instant, steps: usize) {
        if let Some(before) = self.came.replace(now) {
            self.took.push_back((now - before) / steps as u32);
            if self.took.len() > self.max_batches {
                self.took.pop_front();
            }
        }
    }

    /// Must be called when the time until the next tokens will not be the time of a step.
    pub(super) fn pause(&mut self) {
        self.came = None;
    }
}

/// How many steps take at most `time`, if each takes `step`; at least one and at most `max`.
fn within(time: Duration, step: Option<Duration>, max: usize) -> usize {
    let Some(step) = step else { return 1 };
    (time.as_nanos() / step.as_nanos().max(1)).clamp(1, max as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: Depth = Depth { max_batches: 6, max_batch_steps: 4 };

    /// A generation on a card whose steps take `step(n)` milliseconds. A page reads it and takes
    /// `page(n)` for each token. Gives for each token how many steps are in flight after it came,
    /// and how long these steps would take if the generation were stopped before it came.
    fn run(
        pace: &mut Pace,
        tokens: usize,
        step: impl Fn(usize) -> u64,
        page: impl Fn(usize) -> u64,
    ) -> Vec<(usize, Duration)> {
        let ms = Duration::from_millis;
        let mut now = Instant::now();
        let mut free = now;
        let mut in_flight = VecDeque::new();
        let mut submitted = 0;
        pace.pause();
        let mut given = 0; // tokens that came together and are not read yet
        (0..tokens)
            .map(|n| {
                if given == 0 {
                    let batch_steps = pace.batch_steps();
                    let steps = |batches: &VecDeque<(Instant, usize)>| {
                        batches.iter().map(|batch| batch.1).sum()
                    };
                    while pace.has_room(in_flight.len(), steps(&in_flight), batch_steps) {
                        for _ in 0..batch_steps {
                            free = free.max(now) + ms(step(submitted));
                            submitted += 1;
                        }
                        in_flight.push_back((free, batch_steps));
                    }
                }
                let left = free.saturating_duration_since(now);
                if given == 0 {
                    let (done, steps) = in_flight.pop_front().expect("a step is in flight");
                    now = now.max(done);
                    pace.came(now, steps);
                    given = steps;
                }
                given -= 1;
                now += ms(page(n));
                (submitted - n - 1, left)
            })
            .collect()
    }

    #[test]
    fn steps_in_flight_are_done_in_time_at_every_speed() {
        for step in [1, 2, 3, 5, 19, 20, 21, 26, 27, 39, 41, 79, 81, 300, 5000] {
            let mut pace = Pace::new(CARD);
            for (n, (steps, left)) in run(&mut pace, 40, |_| step, |_| 0).into_iter().enumerate() {
                let one = Duration::from_millis(step);
                assert!(left <= MAX_TIME.max(one), "{left:?} of {step} ms steps at token {n}");
                // One step is taken, and the others are in flight.
                if n >= 2 && step >= 5 {
                    let full = (80 / step).clamp(1, 6) as usize;
                    assert_eq!(steps, full - 1, "{step} ms, token {n}");
                }
            }
        }
    }

    #[test]
    fn fast_steps_are_submitted_in_batches_and_other_batches_are_always_in_flight() {
        for (step, batch_steps) in [(1, 4), (2, 4), (3, 2), (4, 2), (5, 1)] {
            let mut pace = Pace::new(CARD);
            let steps = run(&mut pace, 80, |_| step, |_| 0);
            assert_eq!(pace.batch_steps(), batch_steps, "{step} ms");
            // The beginning is left out, because it takes single steps.
            let unused = || steps[40..].iter().map(|(unused, _)| *unused);
            let max = pace.max_batches * batch_steps;
            assert_eq!(unused().max(), Some(max - 1), "{step} ms");
            assert_eq!(unused().min(), Some(max - batch_steps), "{step} ms");
        }
    }

    #[test]
    fn tokens_that_come_late_and_early_in_turn_do_not_make_batches_shorter() {
        let mut pace = Pace::new(CARD);
        let mut now = Instant::now();
        for n in 0..20 {
            now += Duration::from_millis(if n % 2 == 0 { 3 } else { 1 });
            pace.came(now, 1);
        }
        assert_eq!(pace.batch_steps(), 4);
    }

    #[test]
    fn a_card_that_slows_down_is_noticed_with_the_first_slow_token() {
        let mut pace = Pace::new(CARD);
        let in_flight = run(&mut pace, 40, |n| if n < 20 { 6 } else { 200 }, |_| 0);
        // Token 20 is the first slow one. Steps that were submitted before it came are still
        // computed.
        for (n, (steps, _)) in in_flight.into_iter().enumerate() {
            match n {
                5..20 => assert_eq!(steps, 5, "token {n}"),
                20..26 => assert_eq!(steps, 25 - n, "token {n}"),
                26.. => assert_eq!(steps, 0, "token {n}"),
                _ => {}
            }
        }
        // After the card has become fast again, a few tokens are enough to notice it.
        assert_eq!(run(&mut pace, 12, |_| 6, |_| 0)[11].0, 5);
    }

    #[test]
    fn a_fast_card_that_slows_down_finishes_the_steps_in_flight() {
        let mut pace = Pace::new(CARD);
        let in_flight = run(&mut pace, 100, |n| if n < 40 { 1 } else { 20 }, |_| 0);
        for (n, (unused, left)) in in_flight.into_iter().enumerate() {
            assert!(unused < pace.max_batches * pace.max_batch_steps, "{unused} at token {n}");
            if !(16..64).contains(&n) {
                assert!(left <= MAX_TIME, "{left:?} at token {n}");
            }
        }
    }

    #[test]
    fn a_slow_page_does_not_make_the_card_seem_fast() {
        let mut pace = Pace::new(CARD);
        // The page takes a second for every tenth token. In that time all steps in flight are done.
        let in_flight = run(&mut pace, 40, |_| 26, |n| if n % 10 == 9 { 1000 } else { 0 });
        assert_eq!(in_flight[9].0, 2);
        assert!(in_flight.iter().all(|(_, left)| *left <= MAX_TIME), "{in_flight:?}");
    }

    #[test]
    fn the_pace_outlasts_a_generation_but_not_the_time_between_two() {
        let mut pace = Pace::new(CARD);
        run(&mut pace, 10, |_| 5, |_| 0);
        assert!(pace.has_room(5, 5, 1) && !pace.has_room(6, 6, 1));
        pace.pause();
        pace.came(Instant::now() + Duration::from_secs(1000), 1);
        assert!(pace.has_room(5, 5, 1) && !pace.has_room(6, 6, 1));
    }

    #[test]
    fn a_cpu_takes_one_step_at_a_time() {
        let mut pace = Pace::new(Depth { max_batches: 1, max_batch_steps: 1 });
        assert!(run(&mut pace, 20, |_| 1, |_| 0).iter().all(|(steps, _)| *steps == 0));
    }
}
