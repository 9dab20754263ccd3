//! The greedy LM head of an embedding that is split into bytes: `split_f16`, `gemv_lm_head_split`,
//! `gemv_upper`, `penalize_upper` and `rescore`. The results must equal those of `gemv_lm_head`, `penalize`
//! and `sample_best` to the bit.

use std::collections::HashSet;

use half::f16;
use tritloom::compute::MIN_NORM;
use tritloom::gpu::{Buffer, Gpu, Plan, Recorder};
use tritloom::kernels::{
    ADJUSTED_WORDS, Adjustments, Approximation, Dense, DenseType, NO_TOKEN, Penalties,
    SamplingParams, adjusts_little, leads, rescored_blocks, vocab_blocks,
};
use tritloom::sampling::{Mask, Sampling};

use super::device::{
    device, finish, is_slow, note, on_each_device, on_each_device_and_as_cards, read, read_both,
    run, step,
};
use super::embed::{hard_values, upload};
use super::random::Random;

/// The f16 LM head and the greedy one, for the same embedding, each recorded once.
struct LmHeads {
    plain: Plan,
    greedy: Plan,
    /// Both with biases and penalties.
    adjusted: [Plan; 2],
    text: [Text; 2],
    embd: Dense,
    x: Buffer<f32>,
    logits: Buffer<f32>,
    approximation: Approximation,
    best: [Buffer<[u32; 2]>; 2],
    tokens: [Buffer<u32>; 2],
    sampling: Buffer<SamplingParams>,
}

/// The buffers that change the logits of a sequence's tokens.
struct Text {
    penalties: Buffer<Penalties>,
    counts: Buffer<u32>,
    biases: Buffer<f32>,
    masks: Buffer<u32>,
}

impl Text {
    fn new(gpu: &Gpu, rows: usize) -> Self {
        Self {
            penalties: gpu.upload("penalties", &[Penalties::new(&Sampling::default(), 0)]),
            counts: gpu.buffer("counts", rows),
            biases: gpu.buffer("biases", rows),
            masks: gpu.buffer("masks", Mask::n_words(rows)),
        }
    }

    fn adjustments(&self) -> Adjustments<'_> {
        let Self { penalties, counts, biases, masks } = self;
        Adjustments { penalties, counts, biases, masks }
    }
}

/// The result of an LM head: the bits of the best logit, its token, and the token written for the
/// next step.
type Best = (u32, u32, u32);

impl LmHeads {
    fn new(gpu: &Gpu, values: &[f32], k: usize, cuts: &[usize]) -> Self {
        let f16 = upload(gpu, values, k, DenseType::F16, cuts);
        let mut embd = upload(gpu, values, k, DenseType::F16, cuts);
        let error = split(gpu, &mut embd);
        let rows = embd.rows;
        let heads = Self {
            plain: Plan::default(),
            greedy: Plan::default(),
            adjusted: Default::default(),
            text: [Text::new(gpu, rows), Text::new(gpu, rows)],
            x: gpu.buffer("x", k),
            logits: gpu.upload("logits", &vec![f32::NAN; rows]),
            approximation: Approximation {
                error,
                approx: gpu.upload("approx", &vec![f32::NAN; rows]),
                leads: gpu.upload("leads", &vec![[f32::MAX, 0.0]; leads(gpu, &embd)]),
                adjusted: false,
            },
            best: [
                gpu.buffer("best", vocab_blocks(rows)),
                gpu.upload("best", &vec![[f32::MAX.to_bits(), 77]; rescored_blocks(&embd)]),
            ],
            tokens: [gpu.buffer("tokens", 1), gpu.buffer("tokens", 1)],
            sampling: gpu.upload("sampling", &[(&Sampling::default()).into()]),
            embd,
        };
        let Self { embd, x, logits, approximation, best, tokens, sampling, .. } = &heads;
        let step = gpu.upload("step", &[step(0, 1)]);
        let sampled = gpu.buffer("sampled", 1);
        let mut p = Recorder::new(gpu, &step);
        p.gemv_lm_head(&f16, x, logits);
        p.sample_best(sampling, logits, &best[0], true);
        p.sample_commit(&best[0], &tokens[0], &sampled);
        let plain = finish(&mut p);
        let [whole, half] = &heads.text;
        p.gemv_upper(sampling, embd, x, approximation, true);
        p.rescore(sampling, &half.penalties, embd, x, approximation, &best[1]);
        p.sample_commit(&best[1], &tokens[1], &sampled);
        let greedy = finish(&mut p);

        let penalized = gpu.buffer("penalized", rows);
        p.gemv_lm_head(&f16, x, logits);
        p.penalize(whole.adjustments(), &tokens[0], logits, &penalized);
        p.sample_best(sampling, &penalized, &best[0], true);
        p.sample_commit(&best[0], &tokens[0], &sampled);
        let by_all = finish(&mut p);
        let adjusted = Approximation {
            error: approximation.error.clone(),
            approx: gpu.buffer("adjusted", ADJUSTED_WORDS * rows),
            leads: gpu.upload("leads", &vec![[f32::MAX, 0.0]; vocab_blocks(rows)]),
            adjusted: true,
        };
        p.gemv_upper(sampling, embd, x, approximation, false);
        p.penalize_upper(sampling, half.adjustments(), &tokens[1], approximation, &adjusted);
        p.rescore(sampling, &half.penalties, embd, x, &adjusted, &best[1]);
        p.sample_commit(&best[1], &tokens[1], &sampled);
        let by_half = finish(&mut p);
        Self { plain, greedy, adjusted: [by_all, by_half], ..heads }
    }

    /// The results of both LM heads for one hidden state.
    async fn best(&self, gpu: &Gpu, x: &[f32]) -> [Best; 2] {
        self.best_of([&self.plain, &self.greedy], gpu, x).await
    }

    /// The results of two plans for one hidden state.
    async fn best_of(&self, plans: [&Plan; 2], gpu: &Gpu, x: &[f32]) -> [Best; 2] {
        gpu.write(&self.x, 0, x);
        gpu.run(&plans, &step(0, 1));
        let blocks = read_both(gpu, self.best.each_ref()).await;
        let tokens = read_both(gpu, self.tokens.each_ref()).await;
        [0, 1].map(|i| {
            let mut best = (0, NO_TOKEN);
            for &[bits, id] in &blocks[i] {
                let value = |bits| f32::from_bits(bits);
                if id != NO_TOKEN && (best.1 == NO_TOKEN || value(bits) > value(best.0)) {
                    best = (bits, id);
                }
            }
            (best.0, best.1, tokens[i][0])
        })
    }

    /// Asserts that both results are equal.
    async fn agree(&self, gpu: &Gpu, x: &[f32], what: &str) -> u32 {
        let [plain, greedy] = self.best(gpu, x).await;
        assert_eq!(greedy, plain, "{what}: bits of the logit, token, next token");
        assert_eq!(greedy.1, greedy.2, "{what}");
        greedy.1
    }
}

/// Splits the f16 of `embd` into bytes. Returns the error of each row's approximation.
pub(crate) fn split(gpu: &Gpu, embd: &mut Dense) -> Buffer<f32> {
    let error = gpu.buffer("error", embd.rows);
    run(gpu, &step(0, 1), |p| p.split_f16(embd, &error));
    error
}

/// Nearly normal, with a standard deviation of 1.
pub(crate) fn normal(random: &mut Random) -> f32 {
    1.73 * (0..4).map(|_| random.float() - 0.5).sum::<f32>()
}

pub(crate) fn rounded(v: f32) -> f32 {
    f16::from_f32(v).to_f32()
}

fn norm(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The values that the upper bytes of a row stand for. A byte has the sign, four bits of the exponent
/// and three of the mantissa; the rest is taken as its middle. The exponents are relative to the
/// row's greatest.
fn upper(row: &[f32]) -> Vec<f32> {
    let bits = |v: f32| i32::from(f16::from_f32(v).to_bits());
    let exponent = |v: f32| bits(v) >> 10 & 31;
    let shift = row.iter().map(|&v| exponent(v)).max().unwrap_or(0).max(15) - 15;
    let of = |v: f32| {
        let own = exponent(v);
        // Values too small for four bits of exponent take those of others, the smallest last.
        let four_bits = if own >= shift { own - shift } else { shift - 1 - own };
        let half = f16::from_bits(((bits(v) & 0x8380) | four_bits << 10 | 0x40) as u16);
        half.to_f32() * (shift as f32).exp2()
    };
    row.iter().map(|&v| of(v)).collect()
}

/// Every finite f16, including -0, is the same after it is split and joined again, beside values of
/// the same size and of any other.
pub(crate) async fn every_f16_survives_splitting() {
    let bits: Vec<u16> = (0..=u16::MAX).filter(|&bits| f16::from_bits(bits).is_finite()).collect();
    let mixed = (0..bits.len()).map(|i| bits[i * 7919 % bits.len()]);
    let values: Vec<f32> =
        bits.iter().copied().chain(mixed).map(|bits| f16::from_bits(bits).to_f32()).collect();
    on_each_device(async |gpu| {
        for k in [256, 512, 7680] {
            let values: Vec<f32> =
                values.iter().copied().cycle().take(values.len().next_multiple_of(k)).collect();
            let rows = values.len() / k;
            let embd = upload(gpu, &values, k, DenseType::F16Split, &[1, rows / 2]);
            let ids: Vec<u32> = (0..rows as u32).collect();
            let tokens = gpu.upload("tokens", &ids);
            let x = gpu.upload("x", &vec![f32::NAN; values.len()]);
            run(gpu, &step(0, rows), |p| p.embed(&tokens, &embd, 1.0, &x, false));
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert!(bits(&read(gpu, &x).await) == bits(&values), "rows of {k}");
        }
    })
    .await;
}

pub(crate) async fn gemv_lm_head_split_equals_gemv_lm_head_to_the_bit() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(21);
        for (k, rows) in [(128, 1), (384, 63), (640, 1000), (6912, 65), (7680, 9)] {
            let w = hard_values(rows * k, &mut random);
            let x: Vec<f32> = (0..k).map(|_| normal(&mut random)).collect();
            let cuts: &[usize] = if rows == 63 || rows == 1000 { &[20, 21, rows - 1] } else { &[] };
            let d_x = gpu.upload("x", &x);
            let bits = async |ty| {
                let embd = upload(gpu, &w, k, ty, cuts);
                let logits = gpu.upload("logits", &vec![f32::NAN; rows]);
                run(gpu, &step(0, 1), |p| match ty {
                    DenseType::F16Split => p.gemv_lm_head_split(&embd, &d_x, &logits),
                    _ => p.gemv_lm_head(&embd, &d_x, &logits),
                });
                read(gpu, &logits).await.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            let (plain, split) = (bits(DenseType::F16).await, bits(DenseType::F16Split).await);
            assert_eq!(split, plain, "{k} x {rows}");
        }
    })
    .await;
}

/// Rows of `k` values that are hard to bound: `(name, row)`.
fn hard_rows(k: usize, random: &mut Random) -> Vec<(&'static str, Vec<f32>)> {
    let mut row = |f: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        (0..k).map(|i| rounded(f(i, normal(random)))).collect()
    };
    vec![
        ("zeros", row(&|_, _| 0.0)),
        ("negative zeros", row(&|_, _| -0.0)),
        ("normal", row(&|_, v| 0.05 * v)),
        ("nearly 2", row(&|_, v| (1.99 - 0.01 * v.abs()).copysign(v))),
        ("one value", row(&|_, _| 0.0625)),
        ("exact in the upper bytes", upper(&row(&|_, v| v.clamp(-1.9, 1.9)))),
        ("an outlier", row(&|i, v| if i == k / 3 { 1.75 } else { 0.01 * v })),
        ("a large outlier", row(&|i, v| if i == k / 3 { 40.0 } else { 0.01 * v })),
        ("an extreme outlier", row(&|i, v| if i == k / 3 { -6e4 } else { 0.02 * v })),
        ("large", row(&|_, v| 9.0 * v)),
        ("large and small", row(&|i, v| v * 15f32.powi(i as i32 % 8 - 4))),
        ("largest", row(&|_, v| 65504f32.copysign(v))),
        ("subnormal", row(&|_, v| 1e-6 * v)),
        ("smallest", row(&|_, v| 5.96e-8f32.copysign(v))),
        ("one in many", row(&|i, v| if i % 97 == 0 { v } else { 0.0 })),
    ]
}

/// Hidden states of `k` values that are hard to bound: `(name, state)`.
pub(crate) fn hard_states(k: usize, random: &mut Random) -> Vec<(&'static str, Vec<f32>)> {
    let mut state = |f: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        (0..k).map(|i| f(i, normal(random))).collect()
    };
    vec![
        ("normal", state(&|_, v| v)),
        ("positive", state(&|_, v| v.abs())),
        ("zeros", state(&|_, _| 0.0)),
        ("one", state(&|i, _| if i == 1 { -3.0 } else { 0.0 })),
        ("outliers", state(&|i, v| if i % 61 == 3 { 80.0 * v } else { v })),
        ("large", state(&|_, v| 1e20 * v)),
        ("small", state(&|_, v| 1e-20 * v)),
        ("nearly nothing", state(&|_, v| 1e-37 * v)),
        ("too large for squares", state(&|_, v| 1e28 * v)),
    ]
}

/// The stored error is at least the true bound, and hardly more. The approximate logits are the
/// products with the upper bytes. They are within the error of the true logits and of the logits of
/// `gemv_lm_head`.
pub(crate) async fn approximate_logits_are_within_their_error() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(22);
        for (k, cuts) in [(128, &[][..]), (384, &[5, 6]), (7680, &[])] {
            let rows = hard_rows(k, &mut random);
            let values: Vec<f32> = rows.iter().flat_map(|(_, row)| row.clone()).collect();
            let heads = LmHeads::new(gpu, &values, k, cuts);
            let error = read(gpu, &heads.approximation.error).await;
            for ((name, row), &error) in rows.iter().zip(&error) {
                let off = row.iter().zip(upper(row));
                let d = norm(off.map(|(&e, upper)| f64::from(e) - f64::from(upper)));
                let e = norm(row.iter().map(|&e| f64::from(e)));
                // One rounding for each addition, and 16 more.
                let least = d + (k + 16) as f64 / f64::from(1 << 24) * 2.0 * (e + d);
                let share = f64::from(error) / least;
                assert!((1.001..1.003).contains(&share), "{name} of {k}: {share} of {least}");
            }
            for (state, x) in hard_states(k, &mut random) {
                gpu.write(&heads.x, 0, &x);
                gpu.run(&[&heads.plain, &heads.greedy], &step(0, 1));
                let (logits, approx) =
                    (read(gpu, &heads.logits).await, read(gpu, &heads.approximation.approx).await);
                let norm_x = norm(x.iter().map(|&x| f64::from(x)));
                for (i, (name, row)) in rows.iter().enumerate() {
                    let dot = |row: &[f32]| -> f64 {
                        row.iter().zip(&x).map(|(&e, &x)| f64::from(e) * f64::from(x)).sum()
                    };
                    let upper = upper(row);
                    let what = format!("{name} of {k}, x {state}");
                    let bound = f64::from(error[i]) * (norm_x + f64::from(MIN_NORM));
                    let off = (f64::from(approx[i]) - f64::from(logits[i])).abs();
                    assert!(off <= bound, "{what}: off by {off}, at most {bound} allowed");
                    let off = (f64::from(approx[i]) - dot(row)).abs();
                    assert!(
                        off <= bound,
                        "{what}: {off} from the true logit, at most {bound} allowed"
                    );
                    let off = (f64::from(approx[i]) - dot(&upper)).abs();
                    let rounding = 1e-6 * norm_x * norm(upper.iter().map(|&e| e.into()));
                    let underflow = k as f64 * f64::from(f32::MIN_POSITIVE) * 32768.0;
                    assert!(
                        off <= rounding + underflow,
                        "{what}: {off} from the product with the upper bytes"
                    );
                    note("gemv_upper", (off / (rounding + underflow)) as f32);
                }
            }
        }
    })
    .await;
}

/// An embedding of `rows` rows. Many rows are equal or nearly equal, and some are hard to bound. If
/// `loud`, the hard rows include those whose logits exceed all others.
pub(crate) fn adversarial(k: usize, rows: usize, loud: bool, random: &mut Random) -> Vec<Vec<f32>> {
    let length = |row: &[f32]| norm(row.iter().map(|&e| f64::from(e)));
    let mut hard: Vec<Vec<f32>> = hard_rows(k, random).into_iter().map(|(_, row)| row).collect();
    hard.retain(|row| loud || length(row) < 0.06 * (k as f64).sqrt());
    let mut all: Vec<Vec<f32>> = Vec::new();
    for i in 0..rows {
        all.push(match i % 8 {
            // A twin.
            4 => all[random.below(i)].clone(),
            // Equal but for the last bit of one value.
            5 => {
                let mut row = all[random.below(i)].clone();
                let at = random.below(k);
                row[at] = f16::from_bits(f16::from_f32(row[at]).to_bits() ^ 1).to_f32();
                row
            }
            6 => hard[i / 8 % hard.len()].clone(),
            _ => (0..k).map(|_| rounded(0.05 * normal(random))).collect(),
        });
    }
    all
}

/// The greedy token and the bits of its logit equal those of the f16 LM head, also with more shards than
/// one dispatch reads. The hidden states are
/// random, or point at a row with twins and near twins, or are hard to bound.
pub(crate) async fn the_greedy_token_equals_the_f16_lm_heads() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(23);
        let mut chosen = HashSet::new();
        // SwiftShader takes ten times as long.
        let share = if is_slow(gpu) { 10 } else { 1 };
        for (k, rows, cuts, loud, states) in [
            (128, 1100, &[][..], false, 550),
            (384, 600, &[200, 300, 301, 500], true, 300),
            (640, 257, &[], false, 200),
        ] {
            let embedding = adversarial(k, rows, loud, &mut random);
            let heads = LmHeads::new(gpu, &embedding.concat(), k, cuts);
            for (name, x) in hard_states(k, &mut random) {
                heads.agree(gpu, &x, &format!("{k} x {rows}, {name}")).await;
            }
            for i in 0..states / share {
                let towards = &embedding[random.below(rows)];
                let noise = [0.0, 0.001, 0.05, 3.0][i % 4];
                let size = [1.0, 1.0, 30.0, 1e-12][i / 4 % 4];
                let sign = if i % 5 == 4 { -size } else { size };
                let x: Vec<f32> =
                    towards.iter().map(|e| sign * (e + noise * normal(&mut random))).collect();
                chosen.insert(heads.agree(gpu, &x, &format!("{k} x {rows}, state {i}")).await);
            }
        }
        assert!(chosen.len() > 200 / share, "{} tokens", chosen.len());
        let one = LmHeads::new(gpu, &[1.0; 128], 128, &[]);
        assert_eq!(one.agree(gpu, &[-1.0; 128], "a vocabulary of one").await, 0);
    })
    .await;
}

/// Any temperature and seed draws the same token from half of the bytes as from all, also where the
/// hidden state is hard to bound.
pub(crate) async fn a_drawn_token_equals_the_f16_lm_heads() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(27);
        let (k, rows) = (384, 600);
        let embedding = adversarial(k, rows, true, &mut random).concat();
        let heads = LmHeads::new(gpu, &embedding, k, &[300, 301]);
        let states = hard_states(k, &mut random);
        let mut chosen = HashSet::new();
        for seed in 0..60 {
            let temperature = [0.001, 0.3, 0.7, 1.5, 20.0][seed as usize % 5];
            let sampling = Sampling { temperature, seed, ..Sampling::default() };
            gpu.write(&heads.sampling, 0, &[(&sampling).into()]);
            let (name, x) = &states[seed as usize % states.len()];
            chosen.insert(heads.agree(gpu, x, &format!("{name}, {sampling:?}")).await);
        }
        assert!(chosen.len() > 20, "{} tokens", chosen.len());
    })
    .await;
}

/// With biases and penalties too, greedily and drawn. Each token that is chosen counts for the next.
pub(crate) async fn an_adjusted_token_equals_the_f16_lm_heads() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(28);
        let (k, rows) = (384, 600);
        let embedding = adversarial(k, rows, true, &mut random);
        let heads = LmHeads::new(gpu, &embedding.concat(), k, &[300, 301]);
        let mut states: Vec<Vec<f32>> =
            hard_states(k, &mut random).into_iter().map(|(_, x)| x).collect();
        // Near the rows, so that few tokens compete.
        states.extend((0..6).map(|_| {
            let towards = &embedding[random.below(rows)];
            towards.iter().map(|e| 30.0 * (e + 0.05 * normal(&mut random))).collect()
        }));
        let settings = [
            [1.0, 0.0, 0.0, 0.0],
            [1.3, 0.0, 0.0, 0.0],
            [0.1, -2.0, 0.0, 0.5],
            [16.0, 0.5, 2.0, 0.0],
            [1.0, 2.0, -2.0, 3.0],
        ];
        let mut chosen = HashSet::new();
        // SwiftShader takes ten times as long: each setting runs on a quarter of the states there.
        let share = if is_slow(gpu) { 4 } else { 1 };
        for [repeat_penalty, presence_penalty, frequency_penalty, temperature] in settings {
            let penalties = Sampling {
                repeat_penalty,
                presence_penalty,
                frequency_penalty,
                temperature,
                seed: 5,
                ..Sampling::default()
            };
            assert!(adjusts_little(&penalties));
            let mut id = || random.below(rows) as u32;
            let (prompt, output): (Vec<u32>, Vec<u32>) =
                (0..200).map(|_| (id(), [3, 5, 9, id()][id() as usize % 4])).unzip();
            let counts = Penalties::counts(rows, &prompt, &output);
            let mut biases = vec![0.0; rows];
            for bias in [100.0, -100.0, 0.01, -0.5, 3.0] {
                biases[id() as usize] = bias;
            }
            gpu.write(&heads.sampling, 0, &[(&penalties).into()]);
            for text in &heads.text {
                gpu.write(&text.penalties, 0, &[Penalties::new(&penalties, 0)]);
                gpu.write(&text.counts, 0, &counts);
                gpu.write(&text.biases, 0, &biases);
            }
            for (n, x) in states.iter().enumerate().skip(chosen.len() % share).step_by(share) {
                let [all, half] = heads.best_of(heads.adjusted.each_ref(), gpu, x).await;
                assert_eq!(half, all, "{penalties:?}, state {n}");
                chosen.insert(half.1);
            }
            let counts = read_both(gpu, heads.text.each_ref().map(|text| &text.counts)).await;
            assert_eq!(counts[0], counts[1]);
        }
        assert!(chosen.len() > 15 / share, "{} tokens", chosen.len());
    })
    .await;
}

/// With masks too: of many tokens and of few, of the last one alone, and of none in most vocabulary blocks.
/// The best token of all is never allowed.
pub(crate) async fn a_masked_token_equals_the_f16_lm_heads() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(29);
        let (k, rows) = (384, 1300);
        let values: Vec<f32> = (0..k * rows).map(|_| rounded(0.05 * normal(&mut random))).collect();
        let heads = LmHeads::new(gpu, &values, k, &[300, 301]);
        let towards =
            |id: usize| -> Vec<f32> { values[id * k..][..k].iter().map(|e| 30.0 * e).collect() };
        let all = 0..rows as u32;
        let masks: [Vec<u32>; 5] = [
            all.clone().collect(),
            all.clone().filter(|id| id % 3 == 1).collect(),
            vec![rows as u32 - 1],
            vec![0, 31, 32, 63, 64],
            all.clone().filter(|id| (512..520).contains(id)).collect(),
        ];
        for (temperature, repeat_penalty) in [(0.0, 1.0), (1.0, 1.0), (0.0, 1.5), (3.0, 1.2)] {
            let sampling = Sampling { temperature, repeat_penalty, seed: 3, ..Sampling::default() };
            gpu.write(&heads.sampling, 0, &[(&sampling).into()]);
            for (n, ids) in masks.iter().enumerate() {
                let best = random.below(rows);
                let mask = Mask::of(rows, ids.iter().copied().filter(|id| *id != best as u32));
                let words = Mask::words_of_all(std::slice::from_ref(&mask), rows).unwrap();
                for text in &heads.text {
                    let penalties = Penalties::new(&sampling, 1).masked(true);
                    gpu.write(&text.penalties, 0, &[penalties]);
                    gpu.write(&text.masks, 0, &words);
                    gpu.write(&text.counts, 0, &Penalties::counts(rows, &[5, 600], &[0, 40]));
                }
                for x in [towards(best), vec![0.0; k], vec![1e29; k]] {
                    let [all, half] = heads.best_of(heads.adjusted.each_ref(), gpu, &x).await;
                    assert_eq!(half, all, "{sampling:?}, mask {n}");
                    assert!(mask.allows(half.1), "{} of mask {n}", half.1);
                }
            }
        }
    })
    .await;
}

/// Equal rows in different workgroups and shards: the lowest id wins.
pub(crate) async fn the_lowest_of_equal_rows_wins() {
    let mut random = Random(24);
    let (k, rows) = (128, 1300);
    let row: Vec<f32> = (0..k).map(|_| rounded(0.05 * normal(&mut random))).collect();
    let other: Vec<f32> = row.iter().map(|e| -e).collect();
    on_each_device_and_as_cards(async |gpu| {
        for (equal, cuts) in [
            (&[0, 1299][..], &[][..]),
            (&[1, 2, 63, 64, 255, 256], &[]),
            (&[700, 1200, 1250], &[600, 1201]),
            (&[1299], &[1299]),
        ] {
            let rows_of = |id: usize| if equal.contains(&id) { &row } else { &other };
            let values: Vec<f32> = (0..rows).flat_map(|id| rows_of(id).clone()).collect();
            let heads = LmHeads::new(gpu, &values, k, cuts);
            assert_eq!(heads.agree(gpu, &row, "equal rows").await, equal[0] as u32);
        }
        // All rows are equal, so every row is a candidate.
        let heads = LmHeads::new(gpu, &row.repeat(rows), k, &[1299]);
        assert_eq!(heads.agree(gpu, &row, "all rows equal").await, 0);
    })
    .await;
}

pub(crate) async fn a_hidden_state_of_nan_gives_no_token() {
    let mut random = Random(25);
    let values: Vec<f32> = (0..300 * 128).map(|_| rounded(normal(&mut random))).collect();
    let heads = LmHeads::new(device(), &values, 128, &[]);
    let id = heads.agree(device(), &vec![f32::NAN; 128], "no numbers").await;
    assert_eq!(id, NO_TOKEN);
    let mut x = vec![1.0; 128];
    x[5] = f32::INFINITY;
    heads.agree(device(), &x, "infinite").await;
    heads.agree(device(), &vec![f32::MAX; 128], "overflowing").await;
}

/// The lower bytes of ruled-out rows are not read: the worst possible lower bytes leave the token
/// unchanged. Nearly all rows are ruled out, even in a random embedding of real width: of any size,
/// and with outliers.
pub(crate) async fn most_rows_are_ruled_out() {
    on_each_device_and_as_cards(async |gpu| {
        for (deviation, outlier) in [(0.02, None), (0.5, None), (3.0, None), (0.02, Some(600.0))] {
            rules_most_rows_out(gpu, deviation, outlier).await;
        }
    })
    .await;
}

/// With one `outlier` in every row.
async fn rules_most_rows_out(gpu: &Gpu, deviation: f32, outlier: Option<f32>) {
    let mut random = Random(26);
    let (k, rows) = (2560, 700);
    let mut values: Vec<f32> =
        (0..rows * k).map(|_| rounded(deviation * normal(&mut random))).collect();
    if let Some(outlier) = outlier {
        values.chunks_mut(k).for_each(|row| row[random.below(k)] = outlier);
    }
    let heads = LmHeads::new(gpu, &values, k, &[]);
    let x: Vec<f32> = values[7 * k..8 * k].iter().map(|e| e / deviation).collect();
    let expected = heads.agree(gpu, &x, "before").await;
    assert_eq!(expected, 7);
    let penalties = Sampling { presence_penalty: 1.0, ..Sampling::default() };
    for text in &heads.text {
        gpu.write(&text.penalties, 0, &[Penalties::new(&penalties, 1)]);
        gpu.write(&text.counts, 0, &Penalties::counts(rows, &[], &[3, 7, 8]));
    }

    let norm_x = norm(x.iter().map(|&x| f64::from(x))) as f32;
    let (approx, error) =
        (read(gpu, &heads.approximation.approx).await, read(gpu, &heads.approximation.error).await);
    let end = |id: usize, sign: f32| approx[id] + sign * 1.01 * error[id] * norm_x;
    let lower = (0..rows).map(|id| end(id, -1.0)).fold(f32::MIN, f32::max);
    let out: Vec<usize> = (0..rows).filter(|&id| end(id, 1.0) < lower).collect();
    assert!(out.len() > rows - 10, "{} of {rows} are ruled out", out.len());
    for id in out {
        // With these lower bytes and no shift, the values are in the ten thousands and have x's
        // sign. No logit would be larger.
        let buffer = heads.embd.shards[0].buffer.cast::<u8>();
        gpu.write(&buffer, 2 * k * id + k, &vec![0xff; k]);
    }
    for plan in [&heads.greedy, &heads.adjusted[1]] {
        gpu.write(&heads.tokens[1], 0, &[0]);
        gpu.run(&[plan], &step(0, 1));
        assert_eq!(read(gpu, &heads.tokens[1]).await, [7]);
    }
}
