//! Chooses the next token from the logits: the settings, and the choice in plain Rust.
//!
//! The GPU's kernels make the same choice from the same logits, seed and position, except where
//! rounding differs: `sample_best` and `sample_commit`, or with top-k, top-p or min-p the kernels
//! that `kernels/selection.rs` describes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most tokens whose log-probabilities can come with that of the chosen token.
pub const MAX_LOGPROBS: usize = 20;

/// The greatest bias of a token. The least one is its negative. Such a bias decides, because the
/// logits of models are closer together.
pub const MAX_BIAS: f32 = 100.0;

/// Biases, which are added to the logits of some tokens before all else. They are in the order of
/// the tokens' ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogitBias(Vec<(u32, f32)>);

impl FromIterator<(u32, f32)> for LogitBias {
    /// If an id has several biases, the last one counts.
    fn from_iter<T: IntoIterator<Item = (u32, f32)>>(biases: T) -> Self {
        let mut biases: Vec<_> = biases.into_iter().collect();
        biases.sort_by_key(|(id, _)| *id);
        biases.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1;
            }
            same
        });
        Self(biases)
    }
}

impl LogitBias {
    /// Refuses ids that the vocabulary of `n_vocab` tokens does not have, and biases out of range.
    ///
    /// Errors: `bad-option`.
    pub fn check(&self, n_vocab: usize) -> Result<()> {
        let why = match self.0.iter().find_map(|&(id, bias)| {
            let wrong_id = id as usize >= n_vocab;
            (wrong_id || !(-MAX_BIAS..=MAX_BIAS).contains(&bias)).then_some((id, wrong_id))
        }) {
            None => return Ok(()),
            Some((id, true)) => {
                format!("has token {id}, but the vocabulary ends at {}", n_vocab - 1)
            }
            Some((id, false)) => {
                format!("must be from -{MAX_BIAS} to {MAX_BIAS} for token {id}")
            }
        };
        Err(Error::BadOption { name: "logitBias".into(), why })
    }

    /// Whether no token has a bias.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the biases to the `logits` `[n_vocab]`.
    pub fn add_to(&self, logits: &mut [f32]) {
        for &(id, bias) in &self.0 {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit += bias;
            }
        }
    }
}

/// Says which tokens of a vocabulary may be chosen. It has a bit for each token, 1 if the token may
/// be chosen. The logit of every other token becomes -inf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    n_vocab: usize,
    /// The lowest bit is the token with the lowest id. Bits behind the vocabulary are 0.
    words: Vec<u32>,
}

impl Mask {
    /// A mask of no token.
    pub fn of_none(n_vocab: usize) -> Self {
        Self { n_vocab, words: vec![0; Self::n_words(n_vocab)] }
    }

    /// A mask that allows these tokens. Ids behind the vocabulary are left out.
    pub fn of(n_vocab: usize, ids: impl IntoIterator<Item = u32>) -> Self {
        let mut mask = Self::of_none(n_vocab);
        ids.into_iter().for_each(|id| mask.allow(id));
        mask
    }

    /// A mask that allows all tokens but these.
    pub fn without(n_vocab: usize, ids: &[u32]) -> Self {
        let mut mask = Self::from_words(n_vocab, &vec![u32::MAX; Self::n_words(n_vocab)]);
        for &id in ids {
            if let Some(word) = mask.words.get_mut(id as usize / 32) {
                *word &= !(1 << (id % 32));
            }
        }
        mask
    }

    /// A mask from words of 32 bits. Bits behind the vocabulary are left out, and missing words
    /// count as 0.
    pub fn from_words(n_vocab: usize, words: &[u32]) -> Self {
        let mut words = words.to_vec();
        words.resize(Self::n_words(n_vocab), 0);
        if let (Some(last), bits @ 1..) = (words.last_mut(), n_vocab % 32) {
            *last &= (1 << bits) - 1;
        }
        Self { n_vocab, words }
    }

    /// The number of 32-bit words in a mask.
    pub fn n_words(n_vocab: usize) -> usize {
        n_vocab.div_ceil(32)
    }

    /// Adds a token.
    pub fn allow(&mut self, id: u32) {
        if (id as usize) < self.n_vocab {
            self.words[id as usize / 32] |= 1 << (id % 32);
        }
    }

    /// Whether a token may be chosen.
    pub fn allows(&self, id: u32) -> bool {
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// Whether no token may be chosen.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Makes the logits `[n_vocab]` of all other tokens -inf.
    pub fn apply_to(&self, logits: &mut [f32]) {
        for (id, logit) in (0..).zip(logits) {
            if !self.allows(id) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }

    /// The words of several masks, one mask after the other.
    ///
    /// Errors: `internal` for a mask of another vocabulary, or one that allows no token.
    pub fn words_of_all(masks: &[Self], n_vocab: usize) -> Result<Vec<u32>> {
        let wrong = |mask: &&Self| mask.n_vocab != n_vocab || mask.is_empty();
        match masks.iter().find(wrong) {
            None => Ok(masks.iter().flat_map(|mask| &mask.words).copied().collect()),
            Some(mask) if mask.n_vocab != n_vocab => {
                let why = format!("a mask of {} tokens for {n_vocab}", mask.n_vocab);
                Err(Error::Internal(why))
            }
            Some(_) => Err(Error::Internal("a mask allows no token".into())),
        }
    }
}

/// How likely a token was, by the model alone. A log-probability is the natural logarithm of the
/// token's share in the softmax of the logits, before biases, penalties, temperature and all else
/// that changes them. A token that is all but certain has 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Logprobs {
    /// The log-probability of the token itself.
    pub logprob: f32,
    /// The likeliest tokens with their log-probabilities, the likeliest first; of equal ones, the
    /// lowest id first.
    pub top: Vec<(u32, f32)>,
}

impl Logprobs {
    /// The log-probabilities of token `id` and of the `n_top` likeliest tokens, by `logits`
    /// `[n_vocab]`. A logit that is not a number has no share.
    pub fn new(logits: &[f32], id: u32, n_top: usize) -> Self {
        let mut ids: Vec<u32> = in_order(logits).collect();
        ids.sort_unstable_by(|a, b| before(logits, *a, *b));
        let greatest = ids.first().map_or(0.0, |&id| logits[id as usize]);
        let weight = |&id: &u32| (value(logits, id) - finite(greatest)).exp();
        let weights = ids.iter().map(weight).sum();
        let of = |id: u32| Self::of(logits[id as usize], greatest, weights);
        Self { logprob: of(id), top: ids.iter().take(n_top).map(|&id| (id, of(id))).collect() }
    }

    /// The log-probabilities of `ids`, by `logits` `[n_vocab]`.
    pub fn of_each(logits: &[f32], ids: &[u32]) -> Vec<f32> {
        let greatest = in_order(logits).map(|id| logits[id as usize]).reduce(f32::max);
        let greatest = greatest.unwrap_or_default();
        let weight = |id: u32| (value(logits, id) - finite(greatest)).exp();
        let weights = in_order(logits).map(weight).sum();
        ids.iter().map(|&id| Self::of(logits[id as usize], greatest, weights)).collect()
    }

    /// The log-probability of a token with this `logit`. `greatest` is the greatest logit, and
    /// `weights` the sum of exp(logit - greatest) over all tokens.
    pub fn of(logit: f32, greatest: f32, weights: f64) -> f32 {
        (finite(logit) - finite(greatest) - weights.ln()) as f32
    }
}

/// Sampling settings. The default is greedy.
///
/// They are applied after [`LogitBias`], in this order: penalties, temperature, top-k, top-p,
/// min-p. Then one token is drawn. Tokens are ordered by their logits, and equal ones by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sampling {
    /// Divides the logits. 0 means greedy: the best token, or the lowest id of several best.
    pub temperature: f32,
    /// Keep this many of the best tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the fewest best tokens whose probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this probable relative to the best one; 0 keeps all.
    pub min_p: f32,
    /// The same seed on the same adapter gives the same text.
    pub seed: u32,
    /// Divides the positive logits of tokens that the prompt or the output has, and multiplies the
    /// negative ones; 1 changes nothing.
    pub repeat_penalty: f32,
    /// Subtracted from the logits of tokens that the output has.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once for each time that the output has the token.
    pub frequency_penalty: f32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
            repeat_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
        }
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
        if !(self.repeat_penalty > 0.0 && self.repeat_penalty.is_finite()) {
            return bad("repeatPenalty", "must be above 0");
        }
        let range = -2.0..=2.0;
        if !range.contains(&self.presence_penalty) {
            return bad("presencePenalty", "must be between -2 and 2");
        }
        if !range.contains(&self.frequency_penalty) {
            return bad("frequencyPenalty", "must be between -2 and 2");
        }
        Ok(())
    }

    /// The temperature, limited to the greatest value with which a logit of -inf is still not
    /// drawn. With that value every usual logit divided by it is 0 anyway.
    pub fn divisor(&self) -> f64 {
        f64::from(self.temperature).min(1e30)
    }

    /// Whether top-k, top-p or min-p may leave tokens out.
    pub fn is_filtered(&self) -> bool {
        self.top_k > 0 || self.top_p < 1.0 || self.min_p > 0.0
    }

    /// The greatest distance below the greatest logit at which min-p still keeps a token.
    pub fn reach(&self) -> f64 {
        if self.min_p > 0.0 { -f64::from(self.min_p).ln() * self.divisor() } else { MAX_VALUE }
    }

    /// Whether penalties change the logits of tokens that the text has.
    pub fn is_penalized(&self) -> bool {
        let penalties = (self.repeat_penalty, self.presence_penalty, self.frequency_penalty);
        penalties != (1.0, 0.0, 0.0)
    }

    /// Applies the penalties to the `logits` `[n_vocab]` that come after `prompt` and `output`. The
    /// token is chosen later.
    pub fn penalize(&self, logits: &mut [f32], prompt: &[u32], output: &[u32]) {
        let mut times: BTreeMap<u32, f32> = prompt.iter().map(|&id| (id, 0.0)).collect();
        for &id in output {
            *times.entry(id).or_default() += 1.0;
        }
        self.penalize_counted(logits, &times);
    }

    /// Like [`Sampling::penalize`], but takes how often the output has each token: 0 for those that
    /// only the prompt has.
    pub fn penalize_counted(&self, logits: &mut [f32], times: &BTreeMap<u32, f32>) {
        for (&id, &times) in times {
            let Some(logit) = logits.get_mut(id as usize) else { continue };
            let factor = self.repeat_penalty;
            *logit *= if *logit > 0.0 { factor.recip() } else { factor };
            *logit -= self.frequency_penalty * times + self.presence_penalty * times.min(1.0);
        }
    }

    /// Chooses the token after `position` tokens from the `logits` `[n_vocab]`; `None` if no logit
    /// is a number.
    pub fn choose(&self, logits: &[f32], position: u32) -> Option<u32> {
        let best = in_order(logits).min_by(|a, b| before(logits, *a, *b))?;
        if self.is_greedy() {
            return Some(best);
        }
        let below = |id: u32| (value(logits, best) - value(logits, id)) / self.divisor();
        let noisy = |id: u32| gumbel(self.seed, position, id) - below(id);
        let better = |a: &u32, b: &u32| noisy(*b).total_cmp(&noisy(*a)).then(a.cmp(b));
        if self.is_filtered() {
            self.kept(logits).into_iter().min_by(better)
        } else {
            in_order(logits).min_by(better)
        }
    }

    /// The tokens that top-k, top-p and min-p keep of the `logits` `[n_vocab]`, the best first. A
    /// logit that is not a number is left out.
    pub fn kept(&self, logits: &[f32]) -> Vec<u32> {
        let mut kept: Vec<u32> = in_order(logits).collect();
        kept.sort_unstable_by(|a, b| before(logits, *a, *b));
        let Some(&best) = kept.first() else { return kept };
        let below = |id: u32| value(logits, best) - value(logits, id);
        let weight = |id: u32| (-below(id) / self.divisor()).exp();

        if self.top_k > 0 {
            kept.truncate(self.top_k as usize);
        }
        if self.top_p < 1.0 {
            let all: f64 = kept.iter().map(|&id| weight(id)).sum();
            let target = f64::from(self.top_p) * all;
            let mut mass = 0.0;
            let within = kept.iter().take_while(|&&id| {
                let more = mass < target;
                mass += weight(id);
                more
            });
            let within = within.count();
            kept.truncate(within.max(1));
        }
        kept.retain(|&id| below(id) <= self.reach());
        kept
    }
}

/// Half the greatest f32. Greater logits count as this, so that differences of logits do not
/// overflow.
const MAX_VALUE: f64 = 1.7e38_f32 as f64;

/// The tokens whose logits are numbers.
fn in_order(logits: &[f32]) -> impl Iterator<Item = u32> {
    (0..).zip(logits).filter(|(_, logit)| !logit.is_nan()).map(|(id, _)| id)
}

/// The order of tokens: greater logits first, and lower ids first among equals.
fn before(logits: &[f32], a: u32, b: u32) -> Ordering {
    // -0 counts as 0, because their sums with 0 are equal.
    let logit = |id: u32| logits[id as usize] + 0.0;
    logit(b).total_cmp(&logit(a)).then(a.cmp(&b))
}

fn value(logits: &[f32], id: u32) -> f64 {
    finite(logits[id as usize])
}

fn finite(logit: f32) -> f64 {
    f64::from(logit).clamp(-MAX_VALUE, MAX_VALUE)
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
