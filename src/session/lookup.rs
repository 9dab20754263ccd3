//! Prompt lookup: where a text repeats itself, what comes next is known before it is generated.
//!
//! A summary quotes its text, an edit copies its input. When the last few tokens have been there
//! before, the tokens that followed then are put through the model all at once, and those that
//! it would have chosen itself are taken: the text is the greedy one, in fewer passes.

/// Tokens at the end that must have been there before. Fewer match everywhere.
const MIN_MATCH: usize = 3;

/// A longer match is no better a reason.
const MAX_MATCH: usize = 12;

/// Tokens in a row that must have been foreseen before drafts are tried: a pass for few tokens takes
/// longer than one for one, and if it is ordered ahead and begins with a wrong one, it is for nothing.
const STREAK: usize = 2;
/// After passes that did not pay, it must have been more of them, up to so many.
const MAX_STREAK: usize = 64;

/// Tokens none of which was foreseen, after which none is likely to be soon.
const QUIET: usize = 16;

/// Steps of one token that take as long on a fast card as a pass of eight.
pub(super) const STEPS_OF_PASS: usize = 3;

/// Tokens that make a pass pay: until a browser tells what came of it may be twice as long as it takes.
const PAYS: usize = 6;

/// Whether a text has been foreseen of late. Counts, not times, decide: the same generation takes the
/// same passes again.
#[derive(Debug)]
pub(super) struct Lookup {
    streak: usize,
    /// How long a streak must be for a draft.
    needed: usize,
    expected: Option<u32>,
    /// Tokens since one was foreseen.
    quiet: usize,
    /// Whether all was foreseen rightly in the last pass.
    sure: bool,
}

impl Default for Lookup {
    fn default() -> Self {
        // An answer may copy its prompt from the start on.
        Self { streak: 0, needed: STREAK, expected: None, quiet: 0, sure: false }
    }
}

impl Lookup {
    /// Told of each token, `tokens` ending with it.
    pub(super) fn saw(&mut self, tokens: &[u32]) {
        let foreseen = self.expected.is_some() && self.expected == tokens.last().copied();
        (self.streak, self.quiet) =
            if foreseen { (self.streak + 1, 0) } else { (0, self.quiet + 1) };
        self.expected = draft(tokens, 1).first().copied();
    }

    /// Told how many tokens a pass gave, and whether all it had foreseen was right. It gives one where nothing was,
    /// and none if already what it began with was not.
    pub(super) fn passed(&mut self, tokens: usize, all: bool) {
        self.sure = all;
        // Slower down than up: else a text with a surprise now and then would have a pass that does not
        // pay follow each one that does.
        self.needed = match tokens {
            ..PAYS => (2 * self.needed).min(MAX_STREAK),
            PAYS.. => (self.needed - 1).max(STREAK),
        };
    }

    /// Whether nothing was foreseen for long enough that steps may be ordered far ahead: a draft waits
    /// for all of them.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet >= QUIET
    }

    /// Whether a pass is worth ordering before the one ahead of it has come back.
    pub(super) fn is_sure(&self) -> bool {
        self.sure
    }

    /// Whether drafts are worth trying.
    pub(super) fn is_confident(&self) -> bool {
        self.streak >= self.needed && self.expected.is_some()
    }
}

/// `most` tokens that may come after `tokens`: those that followed the last time, where the end of `tokens`
/// was there before; after the longest match, the latest of several. None where there is no match.
pub(super) fn draft(tokens: &[u32], most: usize) -> Vec<u32> {
    let Some((last, before)) = tokens.split_last() else { return Vec::new() };
    let matching = |end: usize| {
        let pairs = tokens[..=end].iter().rev().zip(tokens.iter().rev());
        pairs.take(MAX_MATCH).take_while(|(a, b)| a == b).count()
    };
    let ends = (0..before.len()).rev().filter(|&end| before[end] == *last);
    let best = ends.map(|end| (matching(end), end)).max_by_key(|&(length, end)| (length, end));
    match best {
        Some((length, end)) if length >= MIN_MATCH => {
            // What followed goes up to the end, and from there on as if it went round again.
            tokens[end + 1..].iter().copied().cycle().take(most).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_followed_the_longest_match() {
        // 1 2 3 was followed by 4 and, with a 9 before, by 5.
        let tokens = [1, 2, 3, 4, 0, 9, 1, 2, 3, 5, 6, 7, 8, 0, 9, 1, 2, 3];
        assert_eq!(draft(&tokens, 3), [5, 6, 7]);
        assert_eq!(draft(&tokens, 9), tokens[9..]);
        // Of equally long ones the latest.
        let tokens = [1, 2, 3, 4, 0, 1, 2, 3, 5, 7, 1, 2, 3];
        assert_eq!(draft(&tokens, 1), [5]);
    }

    #[test]
    fn a_draft_goes_round_with_the_text() {
        assert_eq!(draft(&[7, 7, 7, 7], 3), [7, 7, 7]);
        assert_eq!(draft(&[9, 1, 2, 1, 2, 1, 2, 1], 5), [2, 1, 2, 1, 2]);
    }

    #[test]
    fn too_little_is_no_match() {
        for tokens in [&[][..], &[1], &[1, 2, 3], &[2, 3, 9, 1, 2, 3]] {
            assert!(draft(tokens, 4).is_empty(), "{tokens:?}");
        }
    }

    #[test]
    fn confidence_comes_from_foreseen_tokens_and_goes_with_the_first_other() {
        let text = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 9, 9];
        let mut lookup = Lookup::default();
        let confident: Vec<usize> = (1..=text.len())
            .filter(|&n| {
                lookup.saw(&text[..n]);
                lookup.is_confident()
            })
            .collect();
        // 4 and 5 were foreseen after 1 2 3; 9 was not.
        assert_eq!(confident, [11]);
        lookup.saw(&text[..11]);
        lookup.passed(1, false);
        assert!(!lookup.is_confident());
    }

    #[test]
    fn a_text_is_quiet_when_nothing_was_foreseen_for_long() {
        let repeated: Vec<u32> =
            (0..20).chain(17..20).chain([0, 1, 2, 3]).chain(100..120).collect();
        let mut lookup = Lookup::default();
        let quiet: Vec<bool> = (1..=repeated.len())
            .map(|n| {
                lookup.saw(&repeated[..n]);
                lookup.is_quiet()
            })
            .collect();
        // 3 is foreseen after 0 1 2.
        let expected = [vec![false; 15], vec![true; 11], vec![false; 16], vec![true; 5]].concat();
        assert_eq!(quiet, expected);
    }

    #[test]
    fn passes_that_do_not_pay_become_rare() {
        let mut lookup = Lookup::default();
        /// Foreseen tokens until the next draft.
        fn streak(lookup: &mut Lookup) -> usize {
            let text = vec![7; 100];
            lookup.saw(&[1]);
            lookup.saw(&text[..10]);
            (11..)
                .take_while(|&n| {
                    lookup.saw(&text[..n]);
                    !lookup.is_confident()
                })
                .count()
                + 1
        }
        for needed in [2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(streak(&mut lookup), needed);
            lookup.passed(PAYS - 1, false);
        }
        for needed in (2..64).rev().chain([STREAK]) {
            lookup.passed(PAYS, false);
            assert_eq!(streak(&mut lookup), needed);
        }
    }
}
