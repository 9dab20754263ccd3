//! Decides when an answer with a constraint runs ahead without a mask.
//!
//! A mask is known only when the token before it is, so the GPU waits for each token. Where the
//! constraint would have allowed what the model says, as within a long text, steps need no mask:
//! their tokens are compared with it afterwards. A token that it forbids is taken back, and chosen
//! anew with the mask. The steps behind it were in vain.

use crate::sampling::Mask;

/// The fewest and the most steps in flight without a mask.
const STEPS: (usize, usize) = (4, 16);

/// The fewest and the most tokens that are chosen with masks before the next try.
const WAIT: (usize, usize) = (8, 256);

/// A try that ends after fewer allowed tokens has lost more time by the steps in vain than it gained.
const GAINS: usize = 16;

/// How an answer with a constraint goes on.
pub(super) struct Guess {
    /// The tokens that may follow, if the next token is chosen without a mask.
    allowed: Option<Mask>,
    /// Tokens that were chosen with masks since the last try, or since tokens were put in.
    held: usize,
    /// How many of them come before the next try. Each try that loses time doubles it.
    wait: usize,
    /// Tokens of this try that were allowed.
    right: usize,
}

impl Guess {
    pub(super) fn new() -> Self {
        Self { allowed: None, held: 0, wait: WAIT.0, right: 0 }
    }

    /// Takes the mask of the next token. Gives it back if the token has to be chosen with it.
    /// `pays` says whether steps without masks are faster.
    pub(super) fn hold(&mut self, mask: Mask, pays: bool) -> Option<Mask> {
        if pays && self.held >= self.wait {
            self.allowed = Some(mask);
            return None;
        }
        self.held += 1;
        Some(mask)
    }

    /// Looks at a token that was chosen. If it may not follow, gives the mask with which it has to
    /// be chosen anew.
    pub(super) fn refuses(&mut self, id: u32) -> Option<Mask> {
        let mask = self.allowed.take()?;
        if mask.allows(id) {
            self.right += 1;
            return None;
        }
        self.wait = (2 * self.wait).min(WAIT.1);
        self.end();
        Some(mask)
    }

    /// Ends a try, because tokens are put in.
    pub(super) fn end(&mut self) {
        if self.right >= GAINS {
            self.wait = WAIT.0;
        }
        (self.held, self.right) = (0, 0);
    }

    /// The tokens that may follow, if the next token is chosen without a mask.
    pub(super) fn allowed(&self) -> Option<&Mask> {
        self.allowed.as_ref()
    }

    /// How many steps may be in flight without a mask; `None` if there is one. They are in vain if a
    /// token is forbidden, so they are at most half of the tokens that were allowed, or a few.
    pub(super) fn steps(&self) -> Option<usize> {
        self.allowed.as_ref().map(|_| (self.right / 2).clamp(STEPS.0, STEPS.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a model choose `n` tokens of which every `wrong`th may not follow. Gives how many were
    /// chosen without a mask, and how many of them were wrong.
    fn tries(n: usize, wrong: usize) -> (usize, usize) {
        let mut guess = Guess::new();
        let (mut tried, mut failed) = (0, 0);
        for n in 1..=n {
            if guess.hold(Mask::of(8, [1]), true).is_none() {
                tried += 1;
                failed += usize::from(guess.refuses(u32::from(n % wrong != 0)).is_some());
            }
        }
        (tried, failed)
    }

    #[test]
    fn a_model_that_says_what_it_may_runs_ahead() {
        assert_eq!(tries(1000, usize::MAX), (1000 - 8, 0));
    }

    #[test]
    fn a_model_that_never_does_rarely_tries() {
        assert_eq!(tries(1000, 1), (7, 7));
    }

    #[test]
    fn a_model_that_is_soon_wrong_tries_ever_more_rarely() {
        // Every try ends after four tokens that were allowed, before it has gained any time.
        let (tried, failed) = tries(1000, 13);
        assert!(failed <= 7 && tried <= 7 * 13, "{failed} of {tried}");
        // Here each try gains time, so masks choose only the eight tokens after each wrong one.
        assert_eq!(tries(1000, 50), (1000 - 8 * 20, 20));
    }

    #[test]
    fn a_try_that_gained_time_is_soon_followed_by_another_however_it_ends() {
        let mut guess = Guess::new();
        let hold = |guess: &mut Guess| guess.hold(Mask::of(8, [1]), true).is_some();
        for _ in 0..3 {
            while hold(&mut guess) {}
            assert!(guess.refuses(0).is_some());
        }
        while hold(&mut guess) {}
        assert!(guess.refuses(1).is_none());
        for _ in 1..GAINS {
            assert!(!hold(&mut guess) && guess.refuses(1).is_none());
        }
        guess.end();
        assert_eq!((0..100).take_while(|_| hold(&mut guess)).count(), WAIT.0);
    }

    #[test]
    fn more_steps_are_in_flight_the_longer_it_goes_well() {
        let mut guess = Guess::new();
        let mut steps = |n: usize| {
            for _ in 0..n {
                guess.hold(Mask::of(8, [1]), true);
                assert!(guess.refuses(1).is_none());
            }
            guess.hold(Mask::of(8, [1]), true);
            guess.steps()
        };
        assert_eq!([steps(7), steps(1), steps(16), steps(90)], [None, Some(4), Some(8), Some(16)]);
    }

    #[test]
    fn where_it_does_not_pay_masks_stay() {
        let mut guess = Guess::new();
        assert!((0..100).all(|_| guess.hold(Mask::of(8, [1]), false).is_some()));
        assert_eq!(guess.steps(), None);
    }
}
