//! Prompt lookup: guesses the next tokens of a sequence that repeats itself.
//!
//! A summary quotes its text, and an edit copies its input. If the last few tokens occurred before,
//! the tokens that followed them then are drafted. One draft pass checks all of them. Tokens that
//! the model would have chosen itself are accepted. So the sequence is the greedy one, in fewer
//! steps.

/// The fewest tokens at the end of the sequence that must have occurred before. Fewer match
/// everywhere.
const MIN_MATCH: usize = 3;

/// The most tokens that are compared. A longer match makes a draft no better.
const MAX_MATCH: usize = 12;

/// Drafts begin after so many tokens in a row that a draft would have got right. A draft pass takes
/// longer than a step. If it was submitted behind steps and its first token is wrong, it is wasted.
const STREAK: usize = 2;
/// The longest streak that a draft may need. It grows after passes that did not pay.
const MAX_STREAK: usize = 64;

/// If a draft would have got none of so many tokens right, it will probably not get the next ones
/// right either.
const QUIET: usize = 16;

/// On a fast card, a pass of eight tokens takes as long as this many steps of one token.
pub(super) const STEPS_PER_PASS: usize = 3;

/// A pass pays if it gives at least so many tokens, because in a browser its result may take twice
/// as long to arrive as the pass itself takes.
const PAYS: usize = 6;

/// Whether drafts would have been right lately. Counts decide this, and not times, so that the same
/// generation runs the same passes again.
#[derive(Debug)]
pub(super) struct Lookup {
    /// How many tokens in a row, up to the last one, a draft got right.
    streak: usize,
    /// How long the streak must be for a draft.
    needed: usize,
    /// The token that a draft would begin with.
    expected: Option<u32>,
    /// The number of tokens since the last one that a draft got right.
    quiet: usize,
    /// Whether the last pass was accepted whole.
    accepts_whole_passes: bool,
}

impl Default for Lookup {
    fn default() -> Self {
        // Not quiet, because an answer may copy its prompt from its first token on.
        Self { streak: 0, needed: STREAK, expected: None, quiet: 0, accepts_whole_passes: false }
    }
}

impl Lookup {
    /// Must be called after each token; `tokens` end with it.
    pub(super) fn observe(&mut self, tokens: &[u32]) {
        let right = self.expected.is_some() && self.expected == tokens.last().copied();
        (self.streak, self.quiet) = if right { (self.streak + 1, 0) } else { (0, self.quiet + 1) };
        self.expected = draft(tokens, 1).first().copied();
    }

    /// Must be called when tokens were put in; `tokens` end with them. No draft is to blame for them.
    pub(super) fn inserted(&mut self, tokens: &[u32]) {
        self.expected = draft(tokens, 1).first().copied();
    }

    /// Must be called after each pass, with the number of tokens that it gave, and whether its
    /// whole draft was accepted. If no drafted token was accepted, it gives one token. If even its
    /// first token was wrong, which is the last one of the sequence, it gives none.
    pub(super) fn record_pass(&mut self, tokens: usize, whole: bool) {
        self.accepts_whole_passes = whole;
        // The needed streak grows faster than it shrinks. Otherwise, in a sequence with a surprise
        // now and then, a pass that does not pay would follow every pass that pays.
        self.needed = match tokens {
            ..PAYS => (2 * self.needed).min(MAX_STREAK),
            PAYS.. => (self.needed - 1).max(STREAK),
        };
    }

    /// Whether no draft is to be expected soon. Then steps can be submitted far ahead, although a
    /// draft would wait for all of them.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet >= QUIET
    }

    /// Whether to submit the next pass before the result of the one before is here.
    pub(super) fn accepts_whole_passes(&self) -> bool {
        self.accepts_whole_passes
    }

    /// Whether to try a draft.
    pub(super) fn is_confident(&self) -> bool {
        self.streak >= self.needed && self.expected.is_some()
    }
}

/// Drafts `max_tokens` tokens after `tokens`: those that followed when the end of `tokens` occurred
/// before. The longest match counts, and of several the latest. Without a match, drafts nothing.
pub(super) fn draft(tokens: &[u32], max_tokens: usize) -> Vec<u32> {
    let Some((last, before)) = tokens.split_last() else { return Vec::new() };
    let matching = |end: usize| {
        let pairs = tokens[..=end].iter().rev().zip(tokens.iter().rev());
        pairs.take(MAX_MATCH).take_while(|(a, b)| a == b).count()
    };
    let ends = (0..before.len()).rev().filter(|&end| before[end] == *last);
    let best = ends.map(|end| (matching(end), end)).max_by_key(|&(length, end)| (length, end));
    match best {
        Some((length, end)) if length >= MIN_MATCH => {
            // The tokens after the match go on to the end of the sequence. From there the draft
            // assumes that the same tokens follow once more.
            tokens[end + 1..].iter().copied().cycle().take(max_tokens).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_followed_the_longest_match() {
        // 1 2 3 was followed by 4. After a 9, it was followed by 5.
        let tokens = [1, 2, 3, 4, 0, 9, 1, 2, 3, 5, 6, 7, 8, 0, 9, 1, 2, 3];
        assert_eq!(draft(&tokens, 3), [5, 6, 7]);
        assert_eq!(draft(&tokens, 9), tokens[9..]);
        // Of equally long matches, the latest counts.
        let tokens = [1, 2, 3, 4, 0, 1, 2, 3, 5, 7, 1, 2, 3];
        assert_eq!(draft(&tokens, 1), [5]);
    }

    #[test]
    fn a_draft_repeats_the_end_of_the_sequence() {
        assert_eq!(draft(&[7, 7, 7, 7], 3), [7, 7, 7]);
        assert_eq!(draft(&[9, 1, 2, 1, 2, 1, 2, 1], 5), [2, 1, 2, 1, 2]);
    }

    #[test]
    fn short_matches_do_not_count() {
        for tokens in [&[][..], &[1], &[1, 2, 3], &[2, 3, 9, 1, 2, 3]] {
            assert!(draft(tokens, 4).is_empty(), "{tokens:?}");
        }
    }

    #[test]
    fn confidence_grows_with_right_tokens_and_ends_with_the_first_wrong_one() {
        let sequence = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 9, 9];
        let mut lookup = Lookup::default();
        let confident: Vec<usize> = (1..=sequence.len())
            .filter(|&n| {
                lookup.observe(&sequence[..n]);
                lookup.is_confident()
            })
            .collect();
        // A draft would have got 4 and 5 right after 1 2 3, but not 9.
        assert_eq!(confident, [11]);
        lookup.observe(&sequence[..11]);
        lookup.record_pass(1, false);
        assert!(!lookup.is_confident());
    }

    #[test]
    fn a_sequence_is_quiet_when_no_draft_was_right_for_long() {
        let repeated: Vec<u32> =
            (0..20).chain(17..20).chain([0, 1, 2, 3]).chain(100..120).collect();
        let mut lookup = Lookup::default();
        let quiet: Vec<bool> = (1..=repeated.len())
            .map(|n| {
                lookup.observe(&repeated[..n]);
                lookup.is_quiet()
            })
            .collect();
        // A draft gets 3 right after 0 1 2.
        let expected = [vec![false; 15], vec![true; 11], vec![false; 16], vec![true; 5]].concat();
        assert_eq!(quiet, expected);
    }

    #[test]
    fn passes_that_do_not_pay_become_rare() {
        let mut lookup = Lookup::default();
        /// How many right tokens it takes until the next draft.
        fn streak(lookup: &mut Lookup) -> usize {
            let sequence = vec![7; 100];
            lookup.observe(&[1]);
            lookup.observe(&sequence[..10]);
            (11..)
                .take_while(|&n| {
                    lookup.observe(&sequence[..n]);
                    !lookup.is_confident()
                })
                .count()
                + 1
        }
        for needed in [2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(streak(&mut lookup), needed);
            lookup.record_pass(PAYS - 1, false);
        }
        for needed in (2..64).rev().chain([STREAK]) {
            lookup.record_pass(PAYS, false);
            assert_eq!(streak(&mut lookup), needed);
        }
    }
}
