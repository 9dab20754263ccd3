//! The sampler: `sample_filter` finds the threshold, then `sample_best` and `sample_commit` choose
//! the token.

use std::collections::HashMap;

use ternlight::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use ternlight::kernels::{NO_TOKEN, SamplingParams, vocab_blocks};
use ternlight::sampling::Sampling;

use crate::device::{device, read, step};
use crate::support::Random;

/// The sampler of one vocabulary, recorded once.
struct Sampler {
    gpu: &'static Gpu,
    filter: Plan,
    choose: Plan,
    sampling: Buffer<SamplingParams>,
    step: Buffer<Step>,
    logits: Buffer<f32>,
    threshold: Buffer<f32>,
    tokens: Buffer<u32>,
    sampled: Buffer<u32>,
}

impl Sampler {
    fn new(n_vocab: usize) -> Self {
        let gpu = device();
        let mut sampler = Self {
            gpu,
            filter: Plan::default(),
            choose: Plan::default(),
            sampling: gpu.buffer("sampling", 1),
            step: gpu.buffer("step", 1),
            logits: gpu.buffer("logits", n_vocab),
            threshold: gpu.buffer("threshold", 1),
            tokens: gpu.buffer("tokens", 2),
            sampled: gpu.buffer("sampled", 1),
        };
        let best = gpu.buffer("best", vocab_blocks(n_vocab));
        let Self { filter, choose, sampling, step, logits, threshold, tokens, sampled, .. } =
            &mut sampler;
        let mut p = Recorder::new(gpu, step);
        p.sample_filter(sampling, logits, threshold);
        *filter = p.finish();
        p.sample_best(sampling, logits, threshold, &best);
        p.sample_commit(&best, tokens, sampled);
        *choose = p.finish();
        sampler
    }

    fn put(&self, logits: &[f32]) {
        self.gpu.write(&self.logits, 0, logits);
    }

    fn threshold(&self, sampling: &Sampling) -> f32 {
        self.gpu.write(&self.threshold, 0, &[f32::NAN]);
        self.gpu.write(&self.sampling, 0, &[sampling.into()]);
        self.gpu.run(&[&self.filter], &step(0, 1));
        read(self.gpu, &self.threshold)[0]
    }

    /// The token after `position` others. Also checks that the next step and the caller get the
    /// same one.
    fn choose_and_look(&self, sampling: &Sampling, position: usize) -> u32 {
        self.gpu.write(&self.tokens, 0, &[77, 78]);
        let sampled = self.choose(sampling, position);
        assert_eq!(read(self.gpu, &self.tokens), [sampled, 78], "the next step's token");
        sampled
    }

    /// The token after `position` others. Greedy sampling needs no threshold.
    fn choose(&self, sampling: &Sampling, position: usize) -> u32 {
        let step = step(position - 1, 1);
        self.gpu.write(&self.sampling, 0, &[sampling.into()]);
        self.gpu.write(&self.step, 0, &[step]);
        let plans = [&self.filter, &self.choose];
        self.gpu.run(&plans[usize::from(sampling.is_greedy())..], &step);
        read(self.gpu, &self.sampled)[0]
    }
}

fn sampling(temperature: f32, top_k: u32, top_p: f32, min_p: f32) -> Sampling {
    Sampling { temperature, top_k, top_p, min_p, seed: 0 }
}

/// Logits that are hard to sort by probability, `[n]` each.
fn hard_logits(n: usize, random: &mut Random) -> Vec<(&'static str, Vec<f32>)> {
    // Nearly normal, with a standard deviation of `size`.
    let mut noise = |size: f32| -> Vec<f32> {
        let mut sum = || (0..4).map(|_| random.float() - 0.5).sum::<f32>();
        (0..n).map(|_| size * 1.7 * sum()).collect()
    };
    let mut peaked = noise(1.0);
    peaked[n / 3] = 40.0;
    let mut two = noise(0.5);
    (two[0], two[n - 1]) = (30.0, 30.0);
    let negative = noise(3.0).iter().map(|v| v - 100.0).collect();
    let mut half = noise(3.0);
    half.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair[1] = f32::NEG_INFINITY);
    let ties = noise(3.0).iter().map(|v| (v * 2.0).round() / 2.0).collect();
    vec![
        ("noise", noise(3.0)),
        ("one value for all", vec![-1.25; n]),
        ("nearly one value", noise(1e-4)),
        ("one peak", peaked),
        ("two peaks", two),
        ("negative", negative),
        ("half of them -inf", half),
        ("ties", ties),
        ("around zero", noise(1e-30)),
        ("large", noise(3e4)),
    ]
}

/// The least accepted logit is the reference's. Two kinds of token may be decided the other way:
/// tokens whose share is about the error of f32 sums of probabilities, and tokens as near to
/// min-p's limit.
#[test]
fn sample_filter_accepts_the_same_tokens() {
    let settings = [
        sampling(1.0, 0, 1.0, 0.0),
        sampling(0.8, 1, 1.0, 0.0),
        sampling(0.8, 40, 1.0, 0.0),
        sampling(0.8, 257, 1.0, 0.0),
        sampling(0.8, u32::MAX, 1.0, 0.0),
        sampling(0.7, 0, 0.1, 0.0),
        sampling(0.7, 0, 0.9, 0.0),
        sampling(1.3, 0, 0.999, 0.0),
        sampling(0.01, 0, 0.5, 0.0),
        sampling(0.7, 0, 1.0, 0.05),
        sampling(0.7, 0, 1.0, 1.0),
        sampling(0.7, 40, 0.9, 0.0),
        sampling(1.5, 1000, 0.95, 0.01),
        sampling(0.9, 3, 0.999, 0.5),
    ];
    for n_vocab in [1, 257, 4096, 128_256] {
        let sampler = Sampler::new(n_vocab);
        for (name, logits) in hard_logits(n_vocab, &mut Random(11)) {
            sampler.put(&logits);
            for sampling in &settings {
                let found = sampler.threshold(sampling);
                let what = format!("{name} of {n_vocab}, {sampling:?}");
                check_threshold(&what, sampling, &logits, found);
            }
        }
    }
}

fn check_threshold(what: &str, sampling: &Sampling, logits: &[f32], found: f32) {
    let expected = sampling.threshold(logits);
    let (low, high) = (found.min(expected), found.max(expected));
    assert!(!found.is_nan(), "{what}: {found}, not {expected}");
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let t = f64::from(sampling.temperature);
    let weight = |v: f32| (f64::from(v - largest) / t).exp();
    let floor = f64::from(largest) + f64::from(sampling.min_p).ln() * t;
    let tipped = || {
        let between = logits.iter().filter(|&&v| v >= low && v < high);
        between.filter(|&&v| (f64::from(v) - floor).abs() > 1e-6 * floor.abs().max(1.0))
    };
    let share =
        tipped().map(|&v| weight(v)).sum::<f64>() / logits.iter().map(|&v| weight(v)).sum::<f64>();
    // Counting is exact.
    let allowed = if sampling.top_p < 1.0 { 3e-5 } else { 0.0 };
    let count = tipped().count();
    assert!(
        count == 0 || share <= allowed,
        "{what}: {found}, not {expected}: {count} tokens, together {share}"
    );
    assert!(found <= largest, "{what}: {found} keeps none");
}

/// For many seeds and positions, the token is the reference's. The two best may be swapped if they
/// are closer than the error of f32 logarithms.
#[test]
fn the_chosen_token_is_the_references() {
    let mut random = Random(12);
    let (mut chosen, mut tipped) = (0, 0);
    for (n_vocab, seeds) in [(1, 2), (1025, 15), (4096, 15), (128_256, 1)] {
        let sampler = Sampler::new(n_vocab);
        for (name, logits) in hard_logits(n_vocab, &mut random) {
            sampler.put(&logits);
            for seed in 0..seeds {
                for settings in [(1.0, 0, 1.0, 0.0), (0.6, 40, 0.95, 0.02), (2.5, 0, 0.99, 0.0)] {
                    let (temperature, top_k, top_p, min_p) = settings;
                    // For "large" logits, rounding the quotient to f32 alone changes more than
                    // that.
                    if name == "large" && top_k == 0 {
                        continue;
                    }
                    let seed = 0x1234_5679u32.wrapping_mul(seed);
                    let sampling = Sampling { temperature, top_k, top_p, min_p, seed };
                    let position = 1 + seed as usize % 1000;
                    let found = sampler.choose_and_look(&sampling, position);
                    let what = format!("{name} of {n_vocab}, {sampling:?}");
                    chosen += 1;
                    tipped += usize::from(differs(&what, &sampling, &logits, position, found));
                }
            }
        }
    }
    assert!(tipped * 200 <= chosen, "{tipped} of {chosen} differ");
}

/// Whether `found` differs from the reference's choice. Fails if the two are not close to each
/// other.
fn differs(what: &str, sampling: &Sampling, logits: &[f32], position: usize, found: u32) -> bool {
    let expected = sampling.choose(logits, position as u32).unwrap();
    if found == expected {
        return false;
    }
    assert!((found as usize) < logits.len(), "{what}: chose {found}, not {expected}");
    // With a slightly larger logit, it must be the reference's choice.
    let mut nudged = logits.to_vec();
    nudged[found as usize] += 1e-4 * sampling.temperature;
    let second = sampling.choose(&nudged, position as u32);
    assert_eq!(second, Some(found), "{what}: chose {found}, not {expected}");
    true
}

/// Among many equal tokens, the one with the largest noise is chosen. That noise is hard to
/// compute: it is the logarithm of a number next to 1.
#[test]
fn the_largest_noise_is_exact() {
    let n_vocab = 128_256;
    let sampler = Sampler::new(n_vocab);
    let logits = vec![2.0; n_vocab];
    sampler.put(&logits);
    for seed in 0..30 {
        let sampling = Sampling { temperature: 1.0, seed, ..Sampling::default() };
        let found = sampler.choose(&sampling, 9);
        differs("one value for all", &sampling, &logits, 9, found);
    }
}

#[test]
fn greedy_takes_the_lowest_id_among_equals() {
    let greedy = Sampling::default();
    for n_vocab in [1, 64, 1025, 4096, 128_256] {
        let sampler = Sampler::new(n_vocab);
        let last = n_vocab - 1;
        let mut random = Random(13);
        for best in [-3.5, 0.0, 1e30, f32::NEG_INFINITY] {
            for first in [0, 1, 255, 256, 1023, 1024, 4000, last] {
                let first = first.min(last);
                let mut logits: Vec<f32> = (0..n_vocab).map(|_| best - random.float()).collect();
                for id in [first, (first + 1).min(last), (first + 1500).min(last), last] {
                    logits[id] = best;
                }
                sampler.put(&logits);
                let expected = greedy.choose(&logits, 1);
                assert_eq!(
                    Some(sampler.choose_and_look(&greedy, 1)),
                    expected,
                    "{n_vocab}: {best}"
                );
            }
        }
    }
}

#[test]
fn logits_of_nan_give_no_token() {
    let n_vocab = 2049;
    let sampler = Sampler::new(n_vocab);
    let settings = [Sampling::default(), sampling(0.8, 40, 0.9, 0.0), sampling(0.8, 0, 1.0, 0.0)];
    for nan in [f32::NAN, -f32::NAN] {
        let mut logits = vec![nan; n_vocab];
        sampler.put(&logits);
        for sampling in &settings {
            assert_eq!(sampler.choose(sampling, 1), NO_TOKEN, "{sampling:?}");
            assert_eq!(sampling.choose(&logits, 1), None);
        }
        // A number wins against every NaN.
        logits[1500] = -7.0;
        sampler.put(&logits);
        assert_eq!(sampler.choose(&settings[0], 1), 1500);
    }
}

/// Pearson's χ² of counts against probabilities.
fn chi_square(counts: &HashMap<Vec<u32>, u32>, expected: &HashMap<Vec<u32>, f64>, n: usize) -> f64 {
    assert!(counts.keys().all(|key| expected.contains_key(key)), "{counts:?}");
    let term = |(key, p): (&Vec<u32>, &f64)| {
        let (count, mean) = (f64::from(*counts.get(key).unwrap_or(&0)), p * n as f64);
        (count - mean).powi(2) / mean
    };
    expected.iter().map(term).sum()
}

/// Draws follow the softmax of the accepted tokens, over positions and over seeds. Neighbouring
/// draws are independent.
#[test]
fn draws_follow_the_probabilities() {
    let n_vocab = 4096;
    let sampler = Sampler::new(n_vocab);
    let candidates = [(0u32, 1.0f32), (1023, 2.0), (1024, 0.0), (3000, 1.5), (4095, -1.0)];
    let mut logits = vec![f32::NEG_INFINITY; n_vocab];
    candidates.iter().for_each(|&(id, logit)| logits[id as usize] = logit);
    sampler.put(&logits);
    const DRAWS: usize = 700;
    for (temperature, top_k) in [(0.7, 0), (2.0, 3)] {
        let passing = candidates.iter().filter(|(_, logit)| top_k == 0 || *logit >= 1.0);
        let weights: HashMap<u32, f64> =
            passing.map(|&(id, logit)| (id, f64::from(logit / temperature).exp())).collect();
        let total: f64 = weights.values().sum();
        let one = weights.iter().map(|(&id, w)| (vec![id], w / total)).collect();
        let pairs = weights
            .iter()
            .flat_map(|(&a, wa)| weights.iter().map(move |(&b, wb)| (vec![a, b], wa * wb)))
            .map(|(ids, w)| (ids, w / (total * total)))
            .collect();

        let draw = |seed: usize, position: usize| {
            let sampling =
                Sampling { temperature, top_k, seed: seed as u32, ..Sampling::default() };
            sampler.choose(&sampling, position)
        };
        let over_positions: Vec<u32> = (0..DRAWS).map(|i| draw(1, 1 + i)).collect();
        let over_seeds: Vec<u32> = (0..DRAWS).map(|i| draw(i, 100)).collect();
        for draws in [over_positions, over_seeds] {
            // One fair sampler in ten thousand exceeds these limits, for 5 and for 25 outcomes.
            for (length, expected, most) in [(1, &one, 23.5), (2, &pairs, 60.0)] {
                let mut counts = HashMap::new();
                draws.chunks(length).for_each(|ids| *counts.entry(ids.to_vec()).or_default() += 1);
                let chi_square = chi_square(&counts, expected, DRAWS / length);
                assert!(chi_square < most, "T {temperature}, top {top_k}: {chi_square} {counts:?}");
            }
        }
    }
}
