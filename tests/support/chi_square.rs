//! Whether draws follow the probabilities that they should.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// The deviation from the mean that one normal value in ten thousand exceeds.
const Z: f64 = 3.719;

/// Pearson's χ² of the draws against the `shares` of the outcomes, divided by the value that one fair sampler
/// in ten thousand exceeds. Where outcomes are hardly ever drawn, a few more samplers exceed it. The seeds of a
/// test are fixed, so it passes always or never.
#[track_caller]
pub fn chi_square<K: Clone + Debug + Eq + Hash>(draws: &[K], shares: &HashMap<K, f64>) -> f64 {
    let mut counts: HashMap<&K, f64> = HashMap::new();
    draws.iter().for_each(|outcome| *counts.entry(outcome).or_default() += 1.0);
    let stray = counts.keys().find(|outcome| !shares.contains_key(**outcome));
    assert_eq!(stray, None, "drawn, but it has no share");
    let term = |(outcome, share): (&K, &f64)| {
        let mean = share * draws.len() as f64;
        (counts.get(outcome).unwrap_or(&0.0) - mean).powi(2) / mean
    };
    let found: f64 = shares.iter().map(term).sum();
    // The approximation of E. Wilson and M. Hilferty, 1931.
    let df = shares.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * df);
    found / (df * (1.0 - spread + Z * spread.sqrt()).powi(3))
}
