//! How many steps may be under way on the GPU, and how many of them are handed to it at once.

use std::collections::VecDeque;

use web_time::{Duration, Instant};

use crate::engine::MAX_BATCH_STEPS;

/// Lots of steps under way at most, the one whose tokens are awaited among them. Waiting for each token costs
/// two thirds of the speed on a fast card. A browser prepares all steps of a lot before the GPU gets the
/// first: with two lots of four the GPU waits so long that steps one by one are faster, with three it still waits.
const MAX_BATCHES: usize = 4;

/// Time that the steps of a lot take at most, for nobody to see that their tokens come together. Between two
/// submissions a GPU rests for some 40 us, which is a twenty-fifth of a step on a fast card.
const MAX_BATCH_TIME: Duration = Duration::from_millis(5);

/// Time in which all that is under way is to be done, so that who stops a generation does not wait
/// long for the next one: within 100 ms, the way of the answer included. Of a card that slows down all at
/// once, the steps are awaited that were ordered while it was fast.
const MAX_TIME: Duration = Duration::from_millis(80);

/// The speed of late, and what follows from it. It is the card's and the model's, so that it outlasts a
/// generation.
pub(super) struct Pace {
    most_lots: usize,
    most_at_once: usize,
    /// When the last token came, if the next one is a step's time after it.
    came: Option<Instant>,
    /// From one token to the next, the last few times: of several that were there already when they were
    /// asked for, all but one seem to take no time.
    took: VecDeque<Duration>,
    /// What a step is supposed to take instead.
    supposed: Option<Duration>,
}

impl Pace {
    pub(super) fn new(software: bool) -> Self {
        // A CPU gains nothing, and would compute tokens that nobody wants.
        let (most_lots, most_at_once) =
            if software { (1, 1) } else { (MAX_BATCHES, MAX_BATCH_STEPS) };
        Self { most_lots, most_at_once, came: None, took: VecDeque::new(), supposed: None }
    }

    /// From now on, a step is supposed to take `time`.
    pub(super) fn suppose(&mut self, time: Duration) {
        self.supposed = Some(time);
    }

    /// Steps to hand over at once. One until it is known how long that takes, and while the first token of
    /// several is awaited, which is not to wait until more than a few have been prepared.
    pub(super) fn at_once(&self) -> usize {
        if self.came.is_none() { 1 } else { self.within(MAX_BATCH_TIME, self.most_at_once) }
    }

    /// Whether `at_once` steps more may be handed over, `steps` being under way in `lots`.
    pub(super) fn has_room(&self, lots: usize, steps: usize, at_once: usize) -> bool {
        let most = self.within(MAX_TIME, self.most_lots * self.most_at_once);
        lots < self.most_lots && steps + at_once <= most
    }

    fn within(&self, time: Duration, most: usize) -> usize {
        let slowest = self.supposed.as_ref().or_else(|| self.took.iter().max());
        let Some(slowest) = slowest else { return 1 };
        (time.as_nanos() / slowest.as_nanos().max(1)).clamp(1, most as u128) as usize
    }

    /// Told that the tokens of so many steps came.
    pub(super) fn came(&mut self, now: Instant, steps: usize) {
        if let Some(before) = self.came.replace(now) {
            self.took.push_back((now - before) / steps as u32);
            if self.took.len() > MAX_BATCHES {
                self.took.pop_front();
            }
        }
    }

    /// Told that the next token will not be a step after the last.
    pub(super) fn pause(&mut self) {
        self.came = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generation on a card whose steps take `step(n)` milliseconds, one after the other, read by a
    /// page that takes `page(n)` for a token. Gives for each token how many steps are under way when it has
    /// come, and how long all that was ordered before takes at most, were the generation stopped.
    fn run(
        pace: &mut Pace,
        tokens: usize,
        step: impl Fn(usize) -> u64,
        page: impl Fn(usize) -> u64,
    ) -> Vec<(usize, Duration)> {
        let ms = Duration::from_millis;
        let mut now = Instant::now();
        let mut free = now;
        let mut under_way = VecDeque::new();
        let mut ordered = 0;
        pace.pause();
        let mut given = 0; // of the tokens that came together
        (0..tokens)
            .map(|n| {
                if given == 0 {
                    let at_once = pace.at_once();
                    let steps =
                        |lots: &VecDeque<(Instant, usize)>| lots.iter().map(|lot| lot.1).sum();
                    while pace.has_room(under_way.len(), steps(&under_way), at_once) {
                        for _ in 0..at_once {
                            free = free.max(now) + ms(step(ordered));
                            ordered += 1;
                        }
                        under_way.push_back((free, at_once));
                    }
                }
                let left = free.saturating_duration_since(now);
                if given == 0 {
                    let (done, steps) = under_way.pop_front().expect("one is always under way");
                    now = now.max(done);
                    pace.came(now, steps);
                    given = steps;
                }
                given -= 1;
                now += ms(page(n));
                (ordered - n - 1, left)
            })
            .collect()
    }

    #[test]
    fn what_is_under_way_is_done_in_time_at_every_speed() {
        for step in [1, 2, 3, 5, 19, 20, 21, 26, 27, 39, 41, 79, 81, 300, 5000] {
            let mut pace = Pace::new(false);
            for (n, (steps, left)) in run(&mut pace, 40, |_| step, |_| 0).into_iter().enumerate() {
                let one = Duration::from_millis(step);
                assert!(left <= MAX_TIME.max(one), "{left:?} of {step} ms steps at token {n}");
                // One is taken, the others are under way.
                if n >= 2 && step >= 5 {
                    let full = (80 / step).clamp(1, 4) as usize;
                    assert_eq!(steps, full - 1, "{step} ms, token {n}");
                }
            }
        }
    }

    #[test]
    fn fast_steps_are_handed_over_together_and_there_are_always_others_behind_them() {
        for (step, at_once) in [(1, 4), (2, 2), (3, 1)] {
            let mut pace = Pace::new(false);
            let steps = run(&mut pace, 80, |_| step, |_| 0);
            assert_eq!(pace.at_once(), at_once, "{step} ms");
            // After it has got up to speed, which begins with single steps.
            let unused = || steps[40..].iter().map(|(unused, _)| *unused);
            let most = 4 * at_once;
            assert_eq!(unused().max(), Some(most - 1), "{step} ms");
            assert_eq!(unused().min(), Some(most - at_once), "{step} ms");
        }
    }

    #[test]
    fn a_card_that_slows_down_is_noticed_with_the_first_slow_token() {
        let mut pace = Pace::new(false);
        let under_way = run(&mut pace, 40, |n| if n < 20 { 6 } else { 200 }, |_| 0);
        // Token 20 is the first slow one; what was ordered before it came is computed still.
        for (n, (steps, _)) in under_way.into_iter().enumerate() {
            match n {
                3..20 => assert_eq!(steps, 3, "token {n}"),
                20..24 => assert_eq!(steps, 23 - n, "token {n}"),
                24.. => assert_eq!(steps, 0, "token {n}"),
                _ => {}
            }
        }
        // And that it is fast again, a few tokens later.
        assert_eq!(run(&mut pace, 10, |_| 6, |_| 0)[9].0, 3);
    }

    #[test]
    fn a_fast_card_that_slows_down_does_what_was_ordered_before() {
        let mut pace = Pace::new(false);
        let under_way = run(&mut pace, 100, |n| if n < 40 { 1 } else { 20 }, |_| 0);
        for (n, (unused, left)) in under_way.into_iter().enumerate() {
            assert!(unused < MAX_BATCHES * MAX_BATCH_STEPS, "{unused} at token {n}");
            if !(24..56).contains(&n) {
                assert!(left <= MAX_TIME, "{left:?} at token {n}");
            }
        }
    }

    #[test]
    fn a_page_that_is_slow_makes_no_card_seem_fast() {
        let mut pace = Pace::new(false);
        // It takes a second for every tenth token, in which all that is under way gets done.
        let under_way = run(&mut pace, 40, |_| 26, |n| if n % 10 == 9 { 1000 } else { 0 });
        assert_eq!(under_way[9].0, 2);
        assert!(under_way.iter().all(|(_, left)| *left <= MAX_TIME), "{under_way:?}");
    }

    #[test]
    fn the_pace_outlasts_a_generation_but_not_the_time_between_two() {
        let mut pace = Pace::new(false);
        run(&mut pace, 10, |_| 5, |_| 0);
        assert!(pace.has_room(3, 3, 1) && !pace.has_room(4, 4, 1));
        pace.pause();
        pace.came(Instant::now() + Duration::from_secs(1000), 1);
        assert!(pace.has_room(3, 3, 1) && !pace.has_room(4, 4, 1));
    }

    #[test]
    fn a_cpu_takes_step_after_step() {
        let mut pace = Pace::new(true);
        assert!(run(&mut pace, 20, |_| 1, |_| 0).iter().all(|(steps, _)| *steps == 0));
    }
}
