//! Perplexity: how many tokens a model is torn between, on average, at each token of a text.
//!
//! A text is often longer than the context. So windows of `context` tokens go over it, each
//! `stride` tokens further than the one before. Each window scores the tokens that no window before
//! it has scored. Every token but the text's first is scored once. It has at least
//! `context - stride` tokens before it in its window, or all that the text has. If `stride` is
//! `context`, windows do not overlap, and the first token of each is not scored. Let N be the
//! number of scored tokens, and p the probability that the model gave a token after those before it
//! in its window:
//!
//! ```text
//! perplexity = exp(m)          m = the mean of -ln p
//! deviation  = exp(m) * s / √N     s = the standard deviation of -ln p, with N - 1
//! ```
//!
//! The windows are those of Hugging Face's guide "Perplexity of fixed-length models". The deviation
//! is llama.cpp's: the deviation of the mean m, carried through the exponential.

use crate::error::{Error, Result};

/// How windows go over a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Tokens of a window, at least 2.
    pub context: usize,
    /// Tokens from one window's beginning to that of the next, 1 to `context`.
    pub stride: usize,
}

/// The perplexity of a model on a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// `exp(m)`; 1 for a model that is always right and sure.
    pub value: f64,
    /// The standard deviation of `value`, in the same unit; `None` if only one token was scored.
    pub deviation: Option<f64>,
    /// Tokens scored.
    pub scored: usize,
}

/// The most tokens that are scored together. `progress` is called after them.
const TOGETHER: usize = 64;

/// The perplexity on a text of the tokens `ids`.
///
/// `score` takes two lists of tokens. It returns the log-probability of each token of the second
/// list, after those of both lists before it. Within a window, each call continues the call before.
/// `progress` is called after each call, with the result so far and the number of tokens that will
/// be scored.
///
/// Errors: `bad-option` for windows out of range (`context`, `stride`) and for fewer than two tokens
/// (`text`), and those of `score`.
pub async fn perplexity(
    ids: &[u32],
    windows: Windows,
    score: &mut impl AsyncFnMut(&[u32], &[u32]) -> Result<Vec<f32>>,
    progress: &mut dyn FnMut(Perplexity, usize),
) -> Result<Perplexity> {
    windows.check(ids.len())?;
    let targets = |(begin, first, end): (usize, usize, usize)| first.max(begin + 1)..end;
    let total = windows.over(ids.len()).map(|window| targets(window).len()).sum();
    let mut sums = Sums::default();
    for window in windows.over(ids.len()) {
        let (begin, _, end) = window;
        for from in targets(window).step_by(TOGETHER) {
            let to = end.min(from + TOGETHER);
            let mut scores = score(&ids[begin..from], &ids[from..to]).await?.into_iter();
            for target in from..to {
                let score = scores
                    .next()
                    .filter(|score| score.is_finite())
                    .ok_or_else(|| Error::Internal(format!("no probability for token {target}")))?;
                sums.add(-f64::from(score));
            }
            progress(sums.perplexity(), total);
        }
    }
    Ok(sums.perplexity())
}

impl Windows {
    /// Refuses windows out of range, and texts that have no token to score.
    ///
    /// Errors: as [`perplexity`].
    pub fn check(&self, len: usize) -> Result<()> {
        let Self { context, stride } = *self;
        let bad = |name: &str, why: String| Err(Error::BadOption { name: name.into(), why });
        if context < 2 {
            return bad(
                "context",
                format!("{context} tokens; nothing is predicted in fewer than 2"),
            );
        }
        if !(1..=context).contains(&stride) {
            return bad("stride", format!("{stride}, not from 1 to the context of {context}"));
        }
        if len < 2 {
            return bad("text", format!("{len} tokens; perplexity takes at least 2"));
        }
        Ok(())
    }

    /// The windows over a text of `len` tokens. Each is given as three offsets: its beginning, the
    /// first token that was in no window before it, and its end.
    fn over(self, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let end = move |begin: usize| len.min(begin.saturating_add(self.context));
        // The last window is the first one that reaches the end.
        let beyond = len.saturating_sub(self.context);
        let begins = (0..beyond.div_ceil(self.stride) + 1).map(move |i| i * self.stride);
        begins.scan(0, move |before, begin| {
            let first = std::mem::replace(before, end(begin));
            Some((begin, first, end(begin)))
        })
    }
}

/// The mean and the deviation of losses, updated loss by loss (Welford's algorithm).
#[derive(Default)]
struct Sums {
    n: usize,
    mean: f64,
    /// The sum of the squares of the differences from the mean.
    squares: f64,
}

impl Sums {
    fn add(&mut self, loss: f64) {
        self.n += 1;
        let before = loss - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (loss - self.mean);
    }

    fn perplexity(&self) -> Perplexity {
        let (n, value) = (self.n as f64, self.mean.exp());
        let deviation = (self.n > 1).then(|| value * (self.squares / (n - 1.0) / n).sqrt());
        Perplexity { value, deviation, scored: self.n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(len: usize, context: usize, stride: usize) -> Vec<(usize, usize, usize)> {
        Windows { context, stride }.over(len).collect()
    }

    #[test]
    fn windows_end_at_the_end_of_the_text() {
        assert_eq!(over(5, 8, 4), [(0, 0, 5)]);
        assert_eq!(over(8, 8, 4), [(0, 0, 8)]);
        assert_eq!(over(9, 8, 4), [(0, 0, 8), (4, 8, 9)]);
        assert_eq!(over(12, 8, 4), [(0, 0, 8), (4, 8, 12)]);
        assert_eq!(over(10, 4, 3), [(0, 0, 4), (3, 4, 7), (6, 7, 10)]);
        assert_eq!(over(9, 4, 4), [(0, 0, 4), (4, 4, 8), (8, 8, 9)]);
        assert_eq!(over(4, 2, 1), [(0, 0, 2), (1, 2, 3), (2, 3, 4)]);
    }
}
