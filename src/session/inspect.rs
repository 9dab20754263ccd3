//! Reads what the model computes for a prompt: values within its blocks, the attention of a head, and
//! the likeliest tokens after each token.
//!
//! An ordinary call is not slower for it. Here each point in the model is a pass of the whole prompt up to
//! there, so that an inspection takes as long as some dozens of prompts.

use web_time::Instant;

use super::caches::{Wanted, given_up};
use super::loaded::Session;
use super::room::MAX_KEPT;
use crate::compute::{Site, Span, Tap};
use crate::error::{Error, Result};
use crate::model::Config;
use crate::sampling::Logprobs;

/// The most tokens of which the attention is read: it has a number for each two of them.
const MAX_ATTENTION: usize = 2048;

/// The numbers that [`Session::inspect`] reads.
#[derive(Clone, Debug, Default)]
pub struct InspectOptions {
    /// The points in each block whose values are summed up, each once.
    pub sites: Vec<Site>,
    /// The head whose attention is read.
    pub head: Option<Head>,
    /// How many of the likeliest tokens after each token are read; `None`: neither they nor how likely
    /// the prompt's own tokens are.
    pub top: Option<usize>,
}

/// A head of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its block; the first is 0.
    pub block: usize,
    /// Its number among the block's heads of queries; the first is 0.
    pub head: usize,
}

/// The numbers that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspected {
    /// Of each block, for each of [`InspectOptions::sites`].
    pub activations: Vec<Activations>,
    /// The attention `[n_tokens, n_tokens]`: a row for each token, with its weights of all tokens. Those up to
    /// itself have the sum 1, and later ones 0. Empty if no head was asked for.
    pub attention: Vec<f32>,
    /// After each token, the likeliest tokens and the log-probability of the prompt's next one. After the last token
    /// that is 0, because there is no next one. Empty if [`InspectOptions::top`] is `None`.
    pub candidates: Vec<Logprobs>,
}

/// The values at one point of a block, of all tokens of the prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activations {
    /// The block; the first is 0.
    pub block: usize,
    /// The point.
    pub site: Site,
    /// The least finite value; 0 if there is none.
    pub min: f32,
    /// The greatest finite value; 0 if there is none.
    pub max: f32,
    /// The root of the mean of the squares of all that are finite.
    pub rms: f32,
    /// How many are infinite or no numbers.
    pub not_finite: usize,
}

/// Values that are being summed up.
struct Summing {
    sums: Activations,
    squares: f64,
    numbers: usize,
}

impl Summing {
    fn new(block: usize, site: Site) -> Self {
        let (min, max) = (f32::INFINITY, f32::NEG_INFINITY);
        let sums = Activations { block, site, min, max, rms: 0.0, not_finite: 0 };
        Self { sums, squares: 0.0, numbers: 0 }
    }

    fn add(&mut self, values: &[f32]) {
        for &value in values {
            if !value.is_finite() {
                self.sums.not_finite += 1;
                continue;
            }
            self.sums.min = self.sums.min.min(value);
            self.sums.max = self.sums.max.max(value);
            self.squares += f64::from(value) * f64::from(value);
            self.numbers += 1;
        }
    }

    fn finish(self) -> Activations {
        let Self { sums, squares, numbers } = self;
        if numbers == 0 {
            return Activations { min: 0.0, max: 0.0, ..sums };
        }
        Activations { rms: (squares / numbers as f64).sqrt() as f32, ..sums }
    }
}

impl Session {
    /// Reads what `options` ask for, for the prompt `ids`. `progress` is called with the share that is done, up to 1.
    /// Numbers of two engines differ by their rounding.
    ///
    /// Errors: `bad-option` for no ids, ids outside of the vocabulary, a block or head that there is not, and
    /// attention of more than 2048 tokens; `context-full`; `embedding-model` if candidates of a model are asked
    /// for that does not answer; `device-lost`. A KV cache that cannot grow is no error: idle sequences give up their room.
    pub async fn inspect(
        &mut self,
        ids: &[u32],
        options: &InspectOptions,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Inspected> {
        self.engine.check()?;
        self.check_inspected(ids, options)?;
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let found = self.inspect_placed(ids, options, progress).await;
        self.caches.release_all();
        found
    }

    fn check_inspected(&self, ids: &[u32], options: &InspectOptions) -> Result<()> {
        let bad = |name: &str, why: String| Err(Error::BadOption { name: name.into(), why });
        if options.top.is_some() {
            self.check_answers()?;
        }
        self.check_ids(ids)?;
        let config = self.engine.config();
        let Some(Head { block, head }) = options.head else { return Ok(()) };
        if block >= config.n_layer {
            return bad("layer", format!("is {block}, but the last one is {}", config.n_layer - 1));
        }
        if head >= config.n_head {
            return bad("head", format!("is {head}, but the last one is {}", config.n_head - 1));
        }
        if ids.len() > MAX_ATTENTION {
            return bad(
                "prompt",
                format!(
                    "has {} tokens, but the attention of at most {MAX_ATTENTION} is read",
                    ids.len()
                ),
            );
        }
        Ok(())
    }

    async fn inspect_placed(
        &mut self,
        ids: &[u32],
        options: &InspectOptions,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Inspected> {
        let wanted = Wanted { least: ids.len(), most: ids.len() };
        // Without its tokens no other sequence is copied to it, and none is found there later.
        let id = self.place(&[], wanted, MAX_KEPT).await?.ok_or_else(given_up)?;
        let first = self.caches.running(id)?.first();

        let n_layer = self.engine.config().n_layer;
        let points =
            (0..n_layer).flat_map(|block| options.sites.iter().map(move |&site| (block, site)));
        let (heads, tops) = (options.head.iter().count(), options.top.iter().count());
        let all = ((n_layer * options.sites.len() + heads + tops) * ids.len()).max(1);
        let mut done = 0;
        let mut next = |tokens: usize| {
            done += tokens;
            progress(done as f64 / all as f64);
        };

        let mut found = Inspected::default();
        // The last block comes first: it shows how many tokens a pass may have.
        for (block, site) in points.rev() {
            let mut sums = Summing::new(block, site);
            let mut add = |values: Vec<f32>| sums.add(&values);
            let tap = Tap::Product(block, site);
            self.each_value(ids, first, (block, tap), &mut add, &mut next).await?;
            found.activations.push(sums.finish());
        }
        found.activations.reverse();
        if let Some(head) = options.head {
            found.attention = self.attention(ids, first, head, &mut next).await?;
        }
        if let Some(top) = options.top {
            found.candidates = self.candidates(ids, first, top, &mut next).await?;
        }
        Ok(found)
    }

    /// Computes all tokens as far as `tap`, which is in `block`, in passes. Calls `take` with the values of each token.
    async fn each_value(
        &mut self,
        ids: &[u32],
        first: usize,
        (block, tap): (usize, Tap),
        take: &mut dyn FnMut(Vec<f32>),
        next: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let mut pos = 0;
        while pos < ids.len() {
            let most = self.pass_tokens();
            let ids = &ids[pos..ids.len().min(pos + most)];
            let chosen: Vec<usize> = (0..ids.len()).collect();
            let span = Span { first, pos, ids, next: None };
            let submitted = Instant::now();
            let values = self.engine.tap(&[span], &chosen, tap).take().await?;
            // Only a pass through all blocks takes as long as a chunk of a prompt.
            if block + 1 == self.engine.config().n_layer {
                self.chunks.pass_done((ids.len(), most), submitted, Instant::now());
            }
            values.into_iter().for_each(&mut *take);
            pos += ids.len();
            next(ids.len());
        }
        Ok(())
    }

    /// The weights of attention `[n_tokens, n_tokens]` of a head.
    async fn attention(
        &mut self,
        ids: &[u32],
        first: usize,
        Head { block, head }: Head,
        next: &mut dyn FnMut(usize),
    ) -> Result<Vec<f32>> {
        let &Config { n_head, n_head_kv, head_dim, .. } = self.engine.config();
        let mut queries = Vec::with_capacity(ids.len());
        let mut take = |q: Vec<f32>| queries.push(q[head * head_dim..][..head_dim].to_vec());
        self.each_value(ids, first, (block, Tap::Queries(block)), &mut take, next).await?;

        let cache = self.engine.read_cache(2 * block, first, ids.len()).take().await?;
        let head_kv = head / (n_head / n_head_kv);
        let kv = self.info.kv;
        let keys: Vec<Vec<f32>> = cache
            .chunks_exact(self.engine.position_bytes() / size_of::<u32>())
            .map(|position| kv.head(position, head_kv, n_head_kv, head_dim))
            .collect();
        let mut attention = vec![0.0; ids.len() * ids.len()];
        for (n, (row, q)) in attention.chunks_exact_mut(ids.len()).zip(&queries).enumerate() {
            let dot =
                |k: &Vec<f32>| q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
            let scores: Vec<f64> = keys[..=n].iter().map(dot).collect();
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights = scores.iter().map(|score| (score - greatest).exp());
            let total: f64 = weights.clone().sum();
            row.iter_mut().zip(weights).for_each(|(at, weight)| *at = (weight / total) as f32);
        }
        Ok(attention)
    }

    /// The likeliest tokens after each token.
    async fn candidates(
        &self,
        ids: &[u32],
        first: usize,
        top: usize,
        next: &mut dyn FnMut(usize),
    ) -> Result<Vec<Logprobs>> {
        self.engine.use_cache(first);
        let mut candidates = Vec::with_capacity(ids.len());
        for pos in 0..ids.len() {
            let logits = self.engine.prefill_and_read(&ids[pos..=pos], pos, pos).take().await?;
            candidates.push(match ids.get(pos + 1) {
                Some(&following) => Logprobs::new(&logits, following, top),
                None => Logprobs { logprob: 0.0, ..Logprobs::new(&logits, 0, top) },
            });
            next(1);
        }
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(values: &[f32]) -> Activations {
        let mut sums = Summing::new(3, Site::Down);
        values.chunks(2).for_each(|values| sums.add(values));
        sums.finish()
    }

    #[test]
    fn values_that_are_not_finite_are_counted_and_left_out() {
        let found = summed(&[3.0, f32::NAN, -4.0, f32::INFINITY, f32::NEG_INFINITY]);
        let expected = Activations {
            block: 3,
            site: Site::Down,
            min: -4.0,
            max: 3.0,
            rms: 12.5_f32.sqrt(),
            not_finite: 3,
        };
        assert_eq!(found, expected);
        let none = Activations { min: 0.0, max: 0.0, rms: 0.0, not_finite: 1, ..expected };
        assert_eq!(summed(&[f32::NAN]), none);
    }
}
