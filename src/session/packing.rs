//! Packs texts into passes: which tokens of which texts a pass computes, and where in the KV cache.
//!
//! A text that fits into a pass is never divided. The longest texts come first, and each pass is filled up
//! with the longest that still fit, so that few places stay empty. A longer text gets passes of its own,
//! and only its last tokens share one.

use std::collections::BTreeSet;

use crate::compute::MAX_SPANS;

/// Some tokens of a text in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The number of the text.
    pub(super) text: usize,
    /// Where its range of the KV cache begins.
    pub(super) first: usize,
    /// Its tokens in earlier passes.
    pub(super) pos: usize,
    /// Its tokens in this pass.
    pub(super) len: usize,
}

/// Texts that are not computed yet.
pub(super) struct Packing {
    /// The number of tokens of each text, and which one it is.
    waiting: BTreeSet<(usize, usize)>,
    /// A text of which only the first tokens are computed: its number, its tokens, and how many.
    open: Option<(usize, usize, usize)>,
    /// Positions of the KV cache.
    positions: usize,
}

impl Packing {
    /// Texts with so many tokens each, 1 or more and at most `positions`.
    pub(super) fn new(lens: impl Iterator<Item = usize>, positions: usize) -> Self {
        Self { waiting: lens.zip(0..).collect(), open: None, positions }
    }

    /// The tokens of a pass of at most `most`, 1 or more; `None` when all texts are computed.
    pub(super) fn next(&mut self, most: usize) -> Option<Vec<Placed>> {
        let (text, all, pos) = self
            .open
            .take()
            .or_else(|| self.waiting.pop_last().map(|(all, text)| (text, all, 0)))?;
        let len = (all - pos).min(most);
        let mut pass = vec![Placed { text, first: 0, pos, len }];
        if pos + len < all {
            self.open = Some((text, all, pos + len));
            return Some(pass);
        }
        let (mut tokens, mut end) = (len, all);
        while pass.len() < MAX_SPANS {
            let room = (most - tokens).min(self.positions - end);
            let fitting = self.waiting.range(..=(room, usize::MAX)).next_back().copied();
            let Some((len, text)) = fitting else { break };
            self.waiting.remove(&(len, text));
            pass.push(Placed { text, first: end, pos: 0, len });
            (tokens, end) = (tokens + len, end + len);
        }
        Some(pass)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is how tests fail")]

    use super::*;

    fn passes(lens: &[usize], positions: usize, most: usize) -> Vec<Vec<Placed>> {
        let mut packing = Packing::new(lens.iter().copied(), positions);
        std::iter::from_fn(|| packing.next(most)).collect()
    }

    /// Every token of every text is computed once and in its order, within the pass and the cache, and no
    /// two texts of a pass share positions.
    #[test]
    fn every_token_is_computed_once() {
        let many: Vec<usize> = (0..500).map(|n| 1 + n * 37 % 90).collect();
        for lens in [&[1][..], &[5, 5, 5], &[64, 1, 63, 2, 200, 129, 64], &[1; 200], &many] {
            for (positions, most) in [(200, 64), (256, 8), (1000, 512)] {
                let mut done = vec![0; lens.len()];
                for pass in passes(lens, positions, most) {
                    assert!(pass.len() <= MAX_SPANS);
                    assert!(pass.iter().map(|placed| placed.len).sum::<usize>() <= most);
                    let mut end = 0;
                    for &Placed { text, first, pos, len } in &pass {
                        assert_eq!((pos, first >= end), (done[text], true), "{pass:?}");
                        assert!(len > 0);
                        done[text] += len;
                        end = first + pos + len;
                    }
                    assert!(end <= positions);
                }
                assert_eq!(done, lens);
            }
        }
    }

    #[test]
    fn passes_are_full() {
        // 64 + 64, 50 + 40 + 30 + 8, and 127 + 1.
        let found = passes(&[30, 64, 1, 50, 127, 40, 8, 64], 1000, 128);
        assert_eq!(found.len(), 3, "{found:?}");
        // A long text shares only its last pass.
        let found = passes(&[300, 10], 1000, 128);
        let texts = |pass: &Vec<Placed>| pass.iter().map(|placed| placed.text).collect::<Vec<_>>();
        assert_eq!(found.iter().map(texts).collect::<Vec<_>>(), [vec![0], vec![0], vec![0, 1]]);
    }
}
