//! Draws with top-k, top-p and min-p from half of the LM head's bytes. `rescore_kept`, `sample_check`,
//! `rescore_rest`, and the sampler's kernels after them, must choose what these choose from all logits: the
//! token, and the last one that could be drawn, to the bit.

use std::collections::HashSet;

use tritloom::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use tritloom::kernels::{
    Approximation, Dense, DenseType, NO_TOKEN, Rescored, SamplingParams, Selection, leads, pays,
    vocab_blocks,
};
use tritloom::sampling::Sampling;

use super::device::{
    device, finish, is_slow, of_16_lanes, on_each_device_and_as_cards, read, read_both, step,
};
use super::embed::upload;
use super::greedy_lm_head::{adversarial, hard_states, normal, rounded, split};
use super::random::Random;

/// The sampler on one of the LM heads.
struct Chooser {
    plan: Plan,
    /// The same for top-p without top-k.
    by_share: Plan,
    logits: Buffer<f32>,
    selection: Selection,
    sampled: Buffer<u32>,
}

/// The f16 LM head and the split one, for the same embedding, each recorded once.
struct LmHeads {
    whole: Chooser,
    half: Chooser,
    x: Buffer<f32>,
    sampling: Buffer<SamplingParams>,
    step: Buffer<Step>,
    n_leads: usize,
}

/// The choice of one of them: the token, and the last one that could be drawn.
type Chosen = (u32, [u32; 2]);

impl LmHeads {
    async fn new(gpu: &Gpu, values: &[f32], k: usize, cuts: &[usize]) -> Self {
        let f16 = upload(gpu, values, k, DenseType::F16, cuts);
        let mut embd = upload(gpu, values, k, DenseType::F16, cuts);
        let error = split(gpu, &mut embd);
        let (x, sampling) = (gpu.buffer("x", k), gpu.buffer("sampling", 1));
        let (step, n_leads) = (gpu.buffer("step", 1), leads(gpu, &embd));
        let leads = gpu.buffer("leads", n_leads);
        let chooser = async |embd: &Dense| {
            let rows = embd.rows;
            let selection = gpu.allocating("a test", |a| Selection::allocate(a, rows));
            let selection = selection.await.unwrap();
            let (logits, sampled) = (gpu.buffer("logits", rows), gpu.buffer("sampled", 1));
            let (tokens, best) = (gpu.buffer("tokens", 1), gpu.buffer("best", vocab_blocks(rows)));
            let mut p = Recorder::new(gpu, &step);
            let rescored = gpu.allocating("a test", |a| Rescored::allocate(a, embd));
            let rescored = rescored.await.unwrap();
            let half = embd.ty == DenseType::F16Split;
            let greatest = if half { &rescored.greatest } else { &selection.greatest };
            let [plan, by_share] = [false, true].map(|by_share| {
                if half {
                    let (error, leads) = (error.clone(), leads.clone());
                    let approximation =
                        Approximation { error, approx: logits.clone(), leads, adjusted: false };
                    p.gemv_upper(&sampling, embd, &x, &approximation, false);
                    p.rescore_kept(&sampling, embd, &x, &approximation, &rescored);
                } else {
                    p.gemv_lm_head(embd, &x, &logits);
                    p.sample_max(&logits, greatest);
                }
                p.sample_bins(&sampling, &logits, greatest, &selection);
                if half && by_share {
                    p.sample_check(&sampling, &selection, &rescored);
                    p.rescore_rest(&sampling, embd, &x, &logits, &selection, &rescored);
                }
                p.sample_sift(&sampling, &logits, greatest, &selection, &best);
                p.sample_decide(&sampling, &selection, &best, &tokens, &sampled);
                finish(&mut p)
            });
            Chooser { plan, by_share, logits, selection, sampled }
        };
        let (whole, half) = (chooser(&f16).await, chooser(&embd).await);
        Self { whole, half, x, sampling, step, n_leads }
    }

    async fn choose(&self, gpu: &Gpu, chooser: &Chooser, by_share: bool, step: &Step) -> Chosen {
        gpu.run(&[if by_share { &chooser.by_share } else { &chooser.plan }], step);
        (read(gpu, &chooser.sampled).await[0], read(gpu, &chooser.selection.cut).await[0])
    }

    /// Asserts that both choose the same, and that the half-read logits are right. Gives the token, and
    /// the share of the rows that were read in full.
    async fn agree(&self, gpu: &Gpu, x: &[f32], sampling: &Sampling, what: &str) -> (u32, f64) {
        let step = step(sampling.seed as usize % 999, 1);
        gpu.write(&self.x, 0, x);
        gpu.write(&self.sampling, 0, &[sampling.into()]);
        gpu.write(&self.step, 0, &[step]);
        let by_share = takes_share_of_all(sampling);
        let whole = self.choose(gpu, &self.whole, by_share, &step).await;
        let half = self.choose(gpu, &self.half, by_share, &step).await;
        let what = format!("{what}, {sampling:?}");
        assert_eq!(half.0, whole.0, "{what}");
        // With fewer tokens than top-k keeps, the last one is another, which min-p refuses.
        if sampling.min_p == 0.0 || sampling.top_k == 0 {
            assert_eq!(half.1, whole.1, "{what}: the last token that could be drawn");
        }
        let [all, found] = read_both(gpu, [&self.whole.logits, &self.half.logits]).await;
        let pairs = found.iter().zip(&all).filter(|(found, _)| !found.is_nan());
        let wrong = pairs.clone().find(|(found, all)| found != all);
        assert_eq!(wrong, None, "{what}");
        (whole.0, pairs.count() as f64 / all.len() as f64)
    }
}

/// Whether the weights of all tokens decide.
fn takes_share_of_all(sampling: &Sampling) -> bool {
    sampling.top_k == 0 && sampling.top_p < 1.0
}

fn sampling(temperature: f32, top_k: u32, top_p: f32, min_p: f32) -> Sampling {
    Sampling { temperature, top_k, top_p, min_p, ..Sampling::default() }
}

/// All that [`pays`] takes for a large vocabulary, and others that work too.
const SETTINGS: [(f32, u32, f32, f32); 19] = [
    (0.7, 0, 0.95, 0.0),
    (1.0, 0, 0.4, 0.1),
    (0.01, 0, 0.9999999, 0.0),
    (2.0, 0, 1e-9, 0.0),
    (1e30, 0, 0.3, 0.0),
    (0.8, 1, 1.0, 0.0),
    (0.8, 2, 1.0, 0.0),
    (1.3, 3, 0.9, 0.0),
    (0.001, 3, 0.5, 0.0),
    (20.0, 2, 0.7, 0.0),
    (0.7, 40, 0.95, 0.0),
    (2.5, 40, 0.9999999, 0.0),
    (1.0, 40, 1.0, 0.0),
    (1.0, u32::MAX, 0.9, 0.0),
    (0.7, 0, 1.0, 0.05),
    (0.7, 0, 1.0, 1.0),
    (1.5, 5, 1.0, 0.1),
    (1.5, 5, 0.9, 0.1),
    (1e30, 4, 0.3, 0.0),
];

/// Embeddings with twins, near twins and rows that are hard to bound. Hidden states that are hard to
/// bound, or point at a row with twins.
pub(crate) async fn the_drawn_token_equals_the_whole_lm_heads() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(31);
        let mut chosen = HashSet::new();
        let mut settings = SETTINGS.into_iter().cycle();
        // SwiftShader takes ten times as long.
        let share = if is_slow(gpu) { 10 } else { 1 };
        for (k, rows, cuts, loud) in
            [(128, 1100, &[][..], false), (384, 600, &[200, 300, 301, 500], true)]
        {
            let embedding = adversarial(k, rows, loud, &mut random);
            let heads = LmHeads::new(gpu, &embedding.concat(), k, cuts).await;
            let states = hard_states(k, &mut random);
            for (i, settings) in (0..70 / share).zip(&mut settings) {
                let (temperature, top_k, top_p, min_p) = settings;
                let sampling = Sampling {
                    seed: (i * 7919) as u32,
                    ..sampling(temperature, top_k, top_p, min_p)
                };
                let towards = &embedding[random.below(rows)];
                let scale = [1.0, 1.0, 30.0, 1e-12][random.below(4)];
                let x: Vec<f32> =
                    towards.iter().map(|e| scale * (e + 0.5 * normal(&mut random))).collect();
                let (name, hard) = &states[i % states.len()];
                let what = format!("{k} x {rows}");
                chosen.insert(heads.agree(gpu, &x, &sampling, &what).await.0);
                chosen
                    .insert(heads.agree(gpu, hard, &sampling, &format!("{what}, {name}")).await.0);
            }
        }
        assert!(chosen.len() > 75 / share, "{} tokens", chosen.len());
    })
    .await;
}

/// With each setting that pays, except top-p alone, most rows are ruled out. None is where the temperature
/// makes all tokens alike, or the settings keep all of them.
pub(crate) async fn rows_that_are_not_kept_are_ruled_out() {
    let gpu = of_16_lanes();
    let mut random = Random(32);
    // With that many rows, a lane has several leads. SwiftShader takes ten times as long.
    let rows = if is_slow(gpu) { 20_608 } else { 33_280 };
    let k = 128;
    let values: Vec<f32> = (0..k * rows).map(|_| rounded(0.05 * normal(&mut random))).collect();
    let heads = LmHeads::new(gpu, &values, k, &[7_000]).await;
    let towards: Vec<f32> = values[77 * k..78 * k].iter().map(|v| 100.0 * v).collect();
    let state: Vec<f32> = (0..k).map(|_| 3.0 * normal(&mut random)).collect();
    let states = [("a state like a row", towards), ("a random state", state)];
    for (seed, settings) in SETTINGS.into_iter().enumerate() {
        let (temperature, top_k, top_p, min_p) = settings;
        let sampling = Sampling { seed: seed as u32, ..sampling(temperature, top_k, top_p, min_p) };
        let (name, x) = &states[seed % 2];
        // The next test is about these.
        if takes_share_of_all(&sampling) {
            continue;
        }
        let (_, share) = heads.agree(gpu, x, &sampling, name).await;
        if pays(&sampling, heads.n_leads) && temperature < 1e6 {
            assert!(share < 0.5, "{name}, {sampling:?}: {share}");
        } else {
            // A bin is as wide as the logits are apart.
            assert_eq!(share, 1.0, "{name}, {sampling:?}");
        }
    }
    // One token, and the flattest distribution: a zero for each.
    let drawn = async |x: &[f32], what| {
        let mut drawn = HashSet::new();
        for seed in 0..2 {
            let sampling = Sampling { seed, ..sampling(1.0, 40, 0.9, 0.0) };
            drawn.insert(heads.agree(gpu, x, &sampling, what).await.0);
        }
        drawn
    };
    assert_eq!(drawn(&states[0].1, "one token").await, HashSet::from([77]));
    let flat = drawn(&vec![0.0; k], "flat").await;
    assert!(flat.len() > 1 && flat.iter().all(|&id| id < 40), "{flat:?}");
}

fn length(row: &[f32]) -> f32 {
    row.iter().map(|v| v * v).sum::<f32>().sqrt()
}

/// With top-p alone, hardly any row is read in full where few tokens have the weight, whatever the size of
/// the values. All are read where many share it, or two have equal logits at the end.
pub(crate) async fn top_p_alone_rules_rows_out_where_few_tokens_have_the_weight() {
    let (k, rows) = (128, 1500);
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(35);
        for deviation in [0.02, 0.5, 3.0] {
            let mut values: Vec<f32> =
                (0..k * rows).map(|_| rounded(deviation * normal(&mut random))).collect();
            // A twin.
            values.copy_within(7 * k..8 * k, 1300 * k);
            let heads = LmHeads::new(gpu, &values, k, &[900]).await;
            let row = |id: usize| &values[id * k..][..k];
            // The rows of `peaks` get nearly these logits. The others are normal, of nearly 2.6.
            let towards = |peaks: &[(usize, f32)]| -> Vec<f32> {
                let part = |i: usize, &(id, logit): &(usize, f32)| {
                    logit * row(id)[i] / length(row(id)).powi(2)
                };
                (0..k).map(|i| peaks.iter().map(|peak| part(i, peak)).sum()).collect()
            };
            let one = towards(&[(5, 30.0)]);
            let two = towards(&[(5, 30.0), (901, 30.5)]);
            let twins = towards(&[(7, 30.0)]);
            let flat = towards(&[(5, 0.1)]);
            let few = 2.0 / rows as f64;
            for (name, x, top_p, most) in [
                ("one", &one, 0.95, Some(few)),
                ("one", &one, 1e-9, Some(few)),
                ("one", &one, 0.9999999, None),
                ("two", &two, 0.1, Some(few)),
                ("two", &two, 0.9, Some(few)),
                ("twins", &twins, 0.4, None),
                ("twins", &twins, 0.9, None),
                ("flat", &flat, 0.1, None),
                ("flat", &flat, 0.95, None),
            ] {
                let sampling = Sampling { seed: 3, ..sampling(0.7, 0, top_p, 0.0) };
                let what = format!("{name}, deviation {deviation}");
                let (_, share) = heads.agree(gpu, x, &sampling, &what).await;
                let expected = most.map_or(share == 1.0, |most| share <= most);
                assert!(expected, "{what}, top-p {top_p}: {share}");
            }
            // Top-p ends at one of a few likely tokens, or after them.
            let (n, mut ruled_out) = (20, 0);
            for seed in 0..n {
                let peaks: Vec<_> =
                    (20..26).map(|id| (id * 50, 4.5 + 4.0 * random.float())).collect();
                let sampling =
                    Sampling { seed, ..sampling(0.9, 0, 0.5 + 0.49 * random.float(), 0.0) };
                let (_, share) = heads.agree(gpu, &towards(&peaks), &sampling, "some").await;
                ruled_out += u32::from(share < 1.0);
            }
            assert!(0 < ruled_out && ruled_out < n, "{ruled_out} of {n}");
        }
    })
    .await;
}

/// The check counts what the rows that are ruled out may weigh. One token is far above all others, which
/// together weigh 0.4 times as much.
pub(crate) async fn the_weight_of_ruled_out_rows_counts() {
    let gpu = of_16_lanes();
    let mut random = Random(36);
    let (k, rows) = (128, 2000);
    let best: Vec<f32> = (0..k).map(|_| rounded(0.1 * normal(&mut random))).collect();
    let square = length(&best).powi(2);
    let values: Vec<f32> = (0..rows)
        .flat_map(|id| {
            let size = if id == 1234 { 1.0 } else { 0.15 };
            best.iter().map(move |v| rounded(size * v)).collect::<Vec<f32>>()
        })
        .collect();
    let heads = LmHeads::new(gpu, &values, k, &[]).await;
    let x: Vec<f32> = best.iter().map(|v| 10.0 / square * v).collect();
    let (mut alone, mut ruled_out) = (0, 0);
    for percent in 60..75 {
        let sampling = Sampling { seed: percent, ..sampling(1.0, 0, percent as f32 / 100.0, 0.0) };
        let (_, share) = heads.agree(gpu, &x, &sampling, "a long tail").await;
        // The last token that can be drawn, as the bits of its logit with another sign.
        let [key, _] = read(gpu, &heads.half.selection.cut).await[0];
        alone += u32::from(f32::from_bits(key & 0x7fff_ffff) > 5.0);
        ruled_out += u32::from(share < 1.0);
    }
    assert!(0 < ruled_out && ruled_out < alone && alone < 15, "{ruled_out} of {alone}");
}

/// Equal rows at top-k's end: those with the lowest ids are kept, and all of them are read.
pub(crate) async fn ties_at_the_end_are_kept_by_their_ids() {
    let mut random = Random(33);
    let (k, rows) = (128, 1300);
    let row: Vec<f32> = (0..k).map(|_| rounded(0.05 * normal(&mut random))).collect();
    let other: Vec<f32> = row.iter().map(|e| -e).collect();
    let equal = [5, 129, 131, 1024, 1100, 1101, 1299];
    on_each_device_and_as_cards(async |gpu| {
        let rows_of = |id: usize| if equal.contains(&id) { &row } else { &other };
        let values: Vec<f32> = (0..rows).flat_map(|id| rows_of(id).clone()).collect();
        let heads = LmHeads::new(gpu, &values, k, &[1101]).await;
        let x: Vec<f32> = row.iter().map(|e| 100.0 * e).collect();
        for top_k in [1, 3, 5] {
            let mut drawn = HashSet::new();
            for seed in 0..4 * top_k {
                let sampling = Sampling { seed, ..sampling(1.0, top_k, 1.0, 0.0) };
                let (id, share) = heads.agree(gpu, &x, &sampling, "equal rows").await;
                // Where leads are few, other rows are among them.
                if heads.n_leads > equal.len() {
                    assert_eq!(share, 7.0 / rows as f64);
                }
                drawn.insert(id as usize);
            }
            assert_eq!(drawn, equal[..top_k as usize].iter().copied().collect());
        }
    })
    .await;
}

pub(crate) async fn a_hidden_state_of_nan_gives_no_token() {
    let mut random = Random(34);
    let values: Vec<f32> = (0..300 * 128).map(|_| rounded(normal(&mut random))).collect();
    let heads = LmHeads::new(device(), &values, 128, &[]).await;
    let settings =
        [sampling(0.7, 2, 0.9, 0.0), sampling(0.7, 0, 1.0, 0.1), sampling(0.7, 0, 0.9, 0.0)];
    for sampling in settings {
        let chosen = heads.agree(device(), &vec![f32::NAN; 128], &sampling, "no numbers").await;
        assert_eq!(chosen.0, NO_TOKEN);
        let mut x = vec![1.0; 128];
        x[5] = f32::INFINITY;
        heads.agree(device(), &x, &sampling, "infinite").await;
        let (_, share) = heads.agree(device(), &vec![1e31; 128], &sampling, "too large").await;
        assert_eq!(share, 1.0);
    }
}
