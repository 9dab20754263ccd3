//! The sampler: `sample_best` and `sample_commit` choose among all tokens. With top-k, top-p and
//! min-p, `sample_max`, `sample_bins`, `sample_sift` and `sample_decide` choose among those that
//! these keep.

use std::collections::HashMap;

use tritloom::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use tritloom::kernels::{NO_TOKEN, SamplingParams, Selection, vocab_blocks};
use tritloom::sampling::Sampling;

use super::chi_square::chi_square;
use super::device::{device, finish, read, step};
use super::random::Random;

/// Draws that are read together.
const DRAWN: usize = 64;

/// The sampler of one vocabulary, recorded once.
struct Sampler {
    gpu: &'static Gpu,
    /// Chooses among all tokens.
    among_all: Plan,
    /// Chooses among those that top-k, top-p and min-p keep.
    filtered: Plan,
    sampling: Buffer<SamplingParams>,
    step: Buffer<Step>,
    logits: Buffer<f32>,
    selection: Selection,
    tokens: Buffer<u32>,
    sampled: Buffer<u32>,
}

impl Sampler {
    async fn new(n_vocab: usize) -> Self {
        let gpu = device();
        let sampling = gpu.buffer("sampling", 1);
        let step = gpu.buffer("step", 1);
        let logits = gpu.buffer("logits", n_vocab);
        let selection = gpu.allocating("a test", |a| Selection::allocate(a, n_vocab));
        let selection = selection.await.unwrap();
        let (tokens, sampled) = (gpu.buffer("tokens", 2), gpu.buffer("sampled", DRAWN));
        let best = gpu.buffer("best", vocab_blocks(n_vocab));
        let mut p = Recorder::new(gpu, &step);
        p.sample_best(&sampling, &logits, &best, true);
        p.sample_commit(&best, &tokens, &sampled);
        let among_all = finish(&mut p);
        p.sample_max(&logits, &selection.greatest);
        p.sample_bins(&sampling, &logits, &selection.greatest, &selection);
        p.sample_sift(&sampling, &logits, &selection.greatest, &selection, &best);
        p.sample_decide(&sampling, &selection, &best, &tokens, &sampled);
        let filtered = finish(&mut p);
        Self { gpu, among_all, filtered, sampling, step, logits, selection, tokens, sampled }
    }

    fn put(&self, logits: &[f32]) {
        self.gpu.write(&self.logits, 0, logits);
    }

    /// The last token that can be drawn, as its logit and its id.
    async fn last_kept(&self, sampling: &Sampling) -> (f32, u32) {
        self.choose(sampling, 1).await;
        let [key, rank] = read(self.gpu, &self.selection.cut).await[0];
        let bits = if key >> 31 == 0 { !key } else { key & 0x7fff_ffff };
        (f32::from_bits(bits), (1 << 24) - 1 - rank)
    }

    /// The token after `position` others. Also checks that the next step and the caller get the
    /// same one.
    async fn choose_and_look(&self, sampling: &Sampling, position: usize) -> u32 {
        self.gpu.write(&self.tokens, 0, &[77, 78]);
        let sampled = self.choose(sampling, position).await;
        assert_eq!(read(self.gpu, &self.tokens).await, [sampled, 78], "the next step's token");
        sampled
    }

    /// The token after `position` others.
    async fn choose(&self, sampling: &Sampling, position: usize) -> u32 {
        self.submit(sampling, position);
        read(self.gpu, &self.sampled).await[DRAWN - 1]
    }

    /// One token for each of `draws`: how it is drawn, and its position.
    async fn draw(&self, draws: &[(Sampling, usize)]) -> Vec<u32> {
        let mut drawn = Vec::new();
        for draws in draws.chunks(DRAWN) {
            draws.iter().for_each(|(sampling, position)| self.submit(sampling, *position));
            drawn.extend(read(self.gpu, &self.sampled).await.split_off(DRAWN - draws.len()));
        }
        drawn
    }

    /// Chooses a token, to be read later.
    fn submit(&self, sampling: &Sampling, position: usize) {
        let step = step(position - 1, 1);
        self.gpu.write(&self.sampling, 0, &[sampling.into()]);
        self.gpu.write(&self.step, 0, &[step]);
        let filtered = sampling.is_filtered() && !sampling.is_greedy();
        let plan = if filtered { &self.filtered } else { &self.among_all };
        self.gpu.run(&[plan], &step);
    }
}

fn sampling(temperature: f32, top_k: u32, top_p: f32, min_p: f32) -> Sampling {
    Sampling { temperature, top_k, top_p, min_p, ..Sampling::default() }
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
    let mut one_hot = vec![f32::NEG_INFINITY; n];
    one_hot[n / 2] = 5.0;
    let ties = noise(3.0).iter().map(|v| (v * 2.0).round() / 2.0).collect();
    vec![
        ("noise", noise(3.0)),
        ("one value for all", vec![-1.25; n]),
        ("nearly one value", noise(1e-4)),
        ("one peak", peaked),
        ("two peaks", two),
        ("negative", negative),
        ("half of them -inf", half),
        ("one-hot", one_hot),
        ("ties", ties),
        ("around zero", noise(1e-30)),
        ("large", noise(3e4)),
        ("huge", noise(1.0).iter().map(|v| (v * 1e38).clamp(-f32::MAX, f32::MAX)).collect()),
    ]
}

/// The tokens that can be drawn are the reference's. Tokens may be decided the other way whose
/// probability is about the error of f32 sums of probabilities, and tokens as near to min-p's limit.
pub(crate) async fn the_same_tokens_can_be_drawn() {
    let settings = [
        sampling(0.8, 1, 1.0, 0.0),
        sampling(0.8, 40, 1.0, 0.0),
        sampling(0.8, 257, 1.0, 0.0),
        sampling(0.8, u32::MAX, 1.0, 0.0),
        sampling(0.7, 0, 1e-9, 0.0),
        sampling(0.7, 0, 0.1, 0.0),
        sampling(0.7, 0, 0.9, 0.0),
        sampling(1.3, 0, 0.999, 0.0),
        sampling(0.01, 0, 0.5, 0.0),
        sampling(0.7, 0, 1.0, 0.05),
        sampling(0.7, 0, 1.0, 1.0),
        sampling(1.5, 1000, 0.95, 0.01),
        sampling(0.7, 40, 0.95, 0.0),
        sampling(0.9, 3, 0.999, 0.5),
        sampling(1e30, 2000, 0.3001, 0.0),
        sampling(f32::MAX, 2000, 0.3001, 0.0),
    ];
    for n_vocab in [1, 257, 4096, 128_256] {
        let sampler = Sampler::new(n_vocab).await;
        for (i, (name, logits)) in hard_logits(n_vocab, &mut Random(11)).into_iter().enumerate() {
            sampler.put(&logits);
            // Only one size has every setting with all logits: sorting takes long.
            let step = if n_vocab == 257 { 1 } else { 4 };
            for sampling in settings.iter().skip(i % step).step_by(step) {
                let what = format!("{name} of {n_vocab}, {sampling:?}");
                check_kept(&what, sampling, &logits, sampler.last_kept(sampling).await);
            }
        }
    }
}

fn check_kept(what: &str, sampling: &Sampling, logits: &[f32], (last, last_id): (f32, u32)) {
    let mut expected = vec![false; logits.len()];
    sampling.kept(logits).into_iter().for_each(|id| expected[id as usize] = true);
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let t = f64::from(sampling.temperature);
    let nats = |v: f32| f64::from(v - largest) / t;
    let floor = f64::from(largest) - sampling.reach();
    let (mut count, mut share, mut kept) = (0, 0.0, 0);
    for ((id, &v), expected) in (0..).zip(logits).zip(expected) {
        let found = v > last || (v == last && id <= last_id);
        kept += usize::from(found);
        // Noise is between -2.9 and 16.7: the best token wins against any that is 20 nats below.
        let can_be_drawn = nats(v) > -20.0;
        let near_floor =
            sampling.min_p > 0.0 && (f64::from(v) - floor).abs() <= 1e-6 * floor.abs().max(1.0);
        if found != expected && can_be_drawn && !near_floor {
            count += 1;
            share += nats(v).exp();
        }
    }
    share /= logits.iter().map(|&v| nats(v).exp()).sum::<f64>();
    // Counting is exact.
    let allowed = if sampling.top_p < 1.0 { 3e-5 } else { 0.0 };
    assert!(
        count == 0 || share <= allowed,
        "{what}: kept {kept}, to {last} of {last_id}: {count} wrong, together {share}"
    );
    assert!(kept > 0, "{what}: kept none");
}

/// For many seeds and positions, the token is the reference's. The two best may be swapped if they
/// are closer than the error of f32 logarithms.
pub(crate) async fn the_chosen_token_is_the_references() {
    let mut random = Random(12);
    let (mut chosen, mut tipped) = (0, 0);
    for (n_vocab, seeds) in [(1, 1), (1025, 8), (4096, 8), (128_256, 1)] {
        let sampler = Sampler::new(n_vocab).await;
        for (name, logits) in hard_logits(n_vocab, &mut random) {
            sampler.put(&logits);
            for seed in 0..seeds {
                for settings in [(1.0, 0, 1.0, 0.0), (0.6, 40, 0.95, 0.02), (2.5, 0, 0.99, 0.0)] {
                    let (temperature, top_k, top_p, min_p) = settings;
                    // For large logits, rounding the quotient to f32 alone changes more than that.
                    if ["large", "huge"].contains(&name) && top_k == 0 {
                        continue;
                    }
                    let seed = 0x1234_5679u32.wrapping_mul(seed);
                    let sampling = Sampling { seed, ..sampling(temperature, top_k, top_p, min_p) };
                    let position = 1 + seed as usize % 1000;
                    let found = sampler.choose_and_look(&sampling, position).await;
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

/// Over seeds and over positions, each token that is kept is drawn as often as its probability says. The
/// unlikely ones count together.
pub(crate) async fn draws_follow_the_probabilities() {
    // Three blocks of tokens: likely ones, two of them alike, among many that are seldom drawn.
    let mut logits = vec![-4.5; 2100];
    let likely = [(3, 2.0), (500, 1.0), (1023, 1.5), (1024, 1.5), (1700, 0.5), (2099, 2.25)];
    likely.iter().for_each(|&(id, logit)| logits[id] = logit);
    let sampler = Sampler::new(logits.len()).await;
    sampler.put(&logits);
    let outcome = |id: u32| likely.iter().map(|(id, _)| *id as u32).find(|other| *other == id);
    let shares = |sampling: &Sampling| {
        let weight = |id: u32| f64::from(logits[id as usize] / sampling.temperature).exp();
        let mut kept = (0..logits.len() as u32).collect::<Vec<_>>();
        if sampling.is_filtered() {
            kept = sampling.kept(&logits);
        }
        let all: f64 = kept.iter().map(|&id| weight(id)).sum();
        let mut shares = HashMap::new();
        kept.iter().for_each(|&id| *shares.entry(outcome(id)).or_default() += weight(id) / all);
        shares
    };
    for (temperature, top_k, top_p, min_p, outcomes) in [
        (0.7, 0, 1.0, 0.0, 7),
        (1.0, 0, 1.0, 0.0, 7),
        (1.0, 5, 0.9, 0.0, 4),
        (1.0, 0, 0.5, 0.0, 5),
        (1.0, 0, 1.0, 0.16, 6),
    ] {
        let sampling = sampling(temperature, top_k, top_p, min_p);
        let of = |seed: u32| Sampling { seed, ..sampling };
        let over_seeds: Vec<_> = (0..600).map(|seed| (of(seed), 77)).collect();
        let over_positions: Vec<_> = (1..601).map(|position| (of(5), position)).collect();
        let expected = shares(&sampling);
        assert_eq!(expected.len(), outcomes, "{sampling:?}");
        let hotter = Sampling { temperature: 2.0 * temperature, ..sampling };
        for draws in [over_seeds, over_positions] {
            let drawn: Vec<_> = sampler.draw(&draws).await.into_iter().map(outcome).collect();
            let found = chi_square(&drawn, &expected);
            assert!(found < 1.0, "{sampling:?}: {found}");
            // Other probabilities of the same tokens would fail.
            let other = shares(&hotter);
            assert!(other.len() != outcomes || chi_square(&drawn, &other) > 1.0, "{sampling:?}");
        }
    }
}

/// Among many equal tokens, the one with the largest noise is chosen. That noise is hard to
/// compute: it is the logarithm of a number next to 1.
pub(crate) async fn the_largest_noise_is_exact() {
    let n_vocab = 128_256;
    let sampler = Sampler::new(n_vocab).await;
    let logits = vec![2.0; n_vocab];
    sampler.put(&logits);
    for seed in 0..30 {
        let sampling = Sampling { temperature: 1.0, seed, ..Sampling::default() };
        let found = sampler.choose(&sampling, 9).await;
        differs("one value for all", &sampling, &logits, 9, found);
    }
}

pub(crate) async fn greedy_takes_the_lowest_id_among_equals() {
    let greedy = Sampling::default();
    for n_vocab in [1, 64, 1025, 4096, 128_256] {
        let sampler = Sampler::new(n_vocab).await;
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
                    Some(sampler.choose_and_look(&greedy, 1).await),
                    expected,
                    "{n_vocab}: {best}"
                );
            }
        }
    }
}

pub(crate) async fn logits_of_nan_give_no_token() {
    let n_vocab = 2049;
    let sampler = Sampler::new(n_vocab).await;
    let settings = [Sampling::default(), sampling(0.8, 40, 0.9, 0.0), sampling(0.8, 0, 1.0, 0.0)];
    for nan in [f32::NAN, -f32::NAN] {
        let mut logits = vec![nan; n_vocab];
        sampler.put(&logits);
        for sampling in &settings {
            assert_eq!(sampler.choose(sampling, 1).await, NO_TOKEN, "{sampling:?}");
            assert_eq!(sampling.choose(&logits, 1), None);
        }
        // A number wins against every NaN.
        logits[1500] = -7.0;
        sampler.put(&logits);
        for sampling in &settings {
            assert_eq!(sampler.choose(sampling, 1).await, 1500, "{sampling:?}");
        }
    }
}
