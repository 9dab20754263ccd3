//! How the next token is chosen from the logits.

use serde::Deserialize;

use crate::error::{Error, Result};

/// Sampling settings. The default is greedy.
///
/// Applied in this order: temperature, top-k, top-p, min-p; then one token is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sampling {
    /// Divides the logits; 0 is greedy (the best token, the lowest id among equals).
    pub temperature: f32,
    /// Keep this many of the best tokens; 0 keeps all.
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
    /// Whether the best token is always taken. Temperatures too small to divide by count as 0.
    pub fn is_greedy(&self) -> bool {
        self.temperature < 1e-4
    }

    /// Refuses settings that make no sense, naming the option.
    pub fn check(&self) -> Result<()> {
        let bad = |name: &str, why: &str| {
            Err(Error::BadOption { name: name.into(), why: why.into() })
        };
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
}
