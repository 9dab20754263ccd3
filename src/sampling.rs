//! Chooses the next token from the logits: the settings, and the choice in plain Rust.
//!
//! The GPU's kernels make the same choice from the same logits, seed and position, except where
//! rounding differs: `sample_filter` finds the threshold, `sample_best` and `sample_commit` the
//! token.

use serde::Deserialize;

use crate::error::{Error, Result};

/// Sampling settings. The default is greedy.
///
/// Applied in this order: temperature, top-k, top-p, min-p; then one token is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sampling {
    /// Divides the logits; 0 is greedy: the best token, or the lowest id of several best.
    pub temperature: f32,
    /// Keep this many of the best tokens, and those equal to the last of them; 0 keeps all.
    pub top_k: u32,
    /// Keep the fewest best tokens whose probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this probable relative to the best one; 0 keeps all.
    pub min_p: f32,
    /// The same seed on the same adapter gives the same text.
    pub seed: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

impl Sampling {
    /// Whether the best token is always taken. A temperature too small to divide by counts as 0.
    pub fn is_greedy(&self) -> bool {
        self.temperature < 1e-4
    }

    /// Refuses settings out of range.
    ///
    /// Errors: `bad-option` with the option's name.
    pub fn check(&self) -> Result<()> {
        let bad =
            |name: &str, why: &str| Err(Error::BadOption { name: name.into(), why: why.into() });
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return bad("temperature", "must be 0 or more");
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return bad("topP", "must be above 0 and at most 1");
        }
        if !(self.min_p >= 0.0 && self.min_p <= 1.0) {
            return bad("minP", "must be between 0 and 1");
        }
        Ok(())
    }

    /// Chooses the token after `position` tokens from the `logits` `[n_vocab]`; `None` if no logit
    /// is a number.
    pub fn choose(&self, logits: &[f32], position: u32) -> Option<u32> {
        let threshold = if self.is_greedy() { f32::NEG_INFINITY } else { self.threshold(logits) };
        let mut best: Option<(f64, u32)> = None;
        for (id, &logit) in (0..).zip(logits) {
            if logit.is_nan() || logit < threshold {
                continue;
            }
            let value = if self.is_greedy() {
                f64::from(logit)
            } else {
                f64::from(logit) / f64::from(self.temperature) + gumbel(self.seed, position, id)
            };
            if best.is_none_or(|(other, _)| value > other) {
                best = Some((value, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// The smallest logit that top-k, top-p and min-p keep.
    pub fn threshold(&self, logits: &[f32]) -> f32 {
        let mut sorted: Vec<f32> = logits.iter().copied().filter(|v| !v.is_nan()).collect();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let Some(&largest) = sorted.first() else { return f32::MIN };
        let temperature = f64::from(self.temperature);
        let weight = |v: f32| (f64::from(v - largest) / temperature).exp();

        if self.top_k > 0 && (self.top_k as usize) < sorted.len() {
            let last = sorted[self.top_k as usize - 1];
            sorted.retain(|&v| v >= last);
        }
        if self.top_p < 1.0 {
            let target = f64::from(self.top_p) * sorted.iter().map(|&v| weight(v)).sum::<f64>();
            let mut mass = 0.0;
            let within = sorted.iter().take_while(|&&v| {
                let more = mass < target;
                mass += weight(v);
                more
            });
            let kept = within.count();
            sorted.truncate(kept.max(1));
        }
        let least = sorted[sorted.len() - 1];
        if self.min_p > 0.0 {
            let floor = f64::from(largest) + f64::from(self.min_p).ln() * temperature;
            return least.max(floor as f32).min(largest);
        }
        least
    }
}

/// Standard Gumbel noise. The largest sum of log-probability and noise is a fair draw.
fn gumbel(seed: u32, position: u32, id: u32) -> f64 {
    let bits = hash(hash(hash(seed) ^ position) ^ id);
    let uniform = (f64::from(bits >> 9) + 0.5) / f64::from(1 << 23);
    -(-uniform.ln()).ln()
}

/// One step of the generator PCG-RXS-M-XS (M. O'Neill, 2014).
fn hash(x: u32) -> u32 {
    let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}
