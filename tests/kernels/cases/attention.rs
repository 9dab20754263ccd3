//! `attention`, `attention_decode` and `attention_prefill` compute splits of the context.
//! `attention_merge` merges the splits, then norms and quantises.

use std::cell::Cell;

use half::f16;
use tritloom::gpu::{Buffer, Gpu, Recorder, Row, Step, Subgroups};
use tritloom::kernels::{AttentionShape, KvCache, KvType, Norm, Partials};
use tritloom::reference::ops;

use super::device::{assert_close, device, on_each_device, on_each_device_and_as_cards, read, run};
use super::packed_products::{check_groups, groups};
use super::random::Random;
use super::rms_norm::{check_quantized, hard_weight, quantized};
use super::rope_kv::{BEFORE, rope_table, values};

/// One of the three kernels. All take the same buffers.
pub(crate) type Attention = fn(&mut Recorder, &Buffer<f32>, &KvCache, &Partials);

/// The input of attention: queries `[n_tokens, n_head, head_dim]`, keys and values `[n_ctx,
/// n_head_kv, head_dim]`.
pub(crate) struct Case {
    pub(crate) shape: AttentionShape,
    pub(crate) step: Step,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Case {
    /// Scores of a few units, like a model's, and values with outliers.
    pub(crate) fn new(shape: AttentionShape, step: Step, random: &mut Random) -> Self {
        let mut noise = |n: usize, size: f32| -> Vec<f32> {
            // f16 holds these values exactly: this test is not about its rounding.
            (0..n).map(|_| f16::from_f32(size * (2.0 * random.float() - 1.0)).to_f32()).collect()
        };
        let n_ctx = (step.pos + step.n_tokens) as usize;
        let n_kv = shape.n_head_kv * shape.head_dim;
        let q = noise(step.n_tokens as usize * shape.n_head * shape.head_dim, 1.0);
        let (k, mut v) = (noise(n_ctx * n_kv, 2.0), noise(n_ctx * n_kv, 1.0));
        v[0] = -1000.0;
        Self { shape, step, q, k, v }
    }

    /// Every `period`-th position has the score 10⁴, the others −10⁴. f32 holds both exactly, so
    /// equal scores stay equal and share the weight.
    fn extreme(shape: AttentionShape, step: Step, period: usize, random: &mut Random) -> Self {
        let mut case = Self::new(shape, step, random);
        let n_kv = shape.n_head_kv * shape.head_dim;
        case.q.fill(1.0);
        for (position, k) in case.k.chunks_mut(n_kv).enumerate() {
            let sign = if position % period == period - 1 { 1.0 } else { -1.0 };
            k.fill(sign * (10_000 / shape.head_dim) as f32);
        }
        case
    }

    /// The keys or values of all positions as the cache holds them.
    fn rows(&self, values: &[f32]) -> Vec<u32> {
        let AttentionShape { n_head_kv, head_dim, kv, .. } = self.shape;
        match kv {
            KvType::F32 => values.iter().map(|v| v.to_bits()).collect(),
            KvType::F16 => {
                let half = |v: f32| u32::from(f16::from_f32(v).to_bits());
                values.as_chunks().0.iter().map(|&[a, b]| half(a) | half(b) << 16).collect()
            }
            KvType::Int8 => values
                .chunks(n_head_kv * head_dim)
                .flat_map(|row| {
                    let largest = |head: &[f32]| head.iter().fold(0f32, |max, v| max.max(v.abs()));
                    let scales: Vec<f32> =
                        row.chunks(head_dim).map(|head| largest(head) / 127.0).collect();
                    let code = |i: usize| (row[i] / scales[i / head_dim]).round() as i8 as u8;
                    let codes: Vec<u8> = (0..row.len()).map(code).collect();
                    let mut words: Vec<u32> =
                        codes.as_chunks().0.iter().map(|&four| u32::from_le_bytes(four)).collect();
                    words.extend(scales.iter().map(|scale| scale.to_bits()));
                    words.resize(self.shape.row_words(), BEFORE);
                    words
                })
                .collect(),
        }
    }

    /// The values of all positions that such rows hold.
    fn held(&self, rows: &[u32]) -> Vec<f32> {
        rows.chunks(self.shape.row_words()).flat_map(|row| values(row, &self.shape)).collect()
    }

    fn empty_partials(&self, gpu: &Gpu) -> Partials {
        let Self { shape, step, .. } = self;
        let heads = (step.n_tokens * step.n_splits) as usize * shape.n_head;
        Partials {
            shape: *shape,
            sums: gpu.upload("partial_sums", &vec![f32::NAN; heads * shape.head_dim]),
            max_total: gpu.upload("partial_max_total", &vec![[f32::NAN; 2]; heads]),
        }
    }

    /// Runs one of the kernels.
    pub(crate) fn partials(&self, gpu: &Gpu, kernel: Attention) -> Partials {
        let Self { shape, step, .. } = self;
        let partials = self.empty_partials(gpu);
        let q = gpu.upload("q", &self.q);
        // Another text's positions come first. Their floats and scales are NaN.
        let first = 3;
        let others = vec![u32::MAX; first * shape.row_words()];
        let [keys, values] = [&self.k, &self.v]
            .map(|of| gpu.upload("cache", &[&others[..], &self.rows(of)].concat()));
        let cache = KvCache { shape: *shape, keys, values };
        let mut step = Step { first: first as u32, ..*step };
        step.rows.iter_mut().for_each(|row| row.first += first as u32);
        run(gpu, &step, |p| kernel(p, &q, &cache, &partials));
        partials
    }

    /// The heads' outputs `[n_tokens, n_head, head_dim]`.
    fn expected(&self) -> Vec<f32> {
        let AttentionShape { n_head, n_head_kv, head_dim, .. } = self.shape;
        // The kernels get scaled queries; the reference scales them itself.
        let scale = (head_dim as f32).sqrt();
        let q: Vec<f32> = self.q.iter().map(|q| q * scale).collect();
        let [k, v] = [&self.k, &self.v].map(|of| self.held(&self.rows(of)));
        q.chunks(n_head * head_dim)
            .enumerate()
            .flat_map(|(token, q)| {
                let seen = (self.step.pos as usize + token + 1) * n_head_kv * head_dim;
                ops::attention(q, &k[..seen], &v[..seen], n_head, n_head_kv, head_dim)
            })
            .collect()
    }

    /// The largest absolute value among the terms of each output, `[n_tokens, n_head, head_dim]`.
    fn sizes(&self) -> Vec<f32> {
        let AttentionShape { n_head, n_head_kv, head_dim, .. } = self.shape;
        let size = |head: usize, i: usize| {
            let values = self.v[head / (n_head / n_head_kv) * head_dim + i..].iter();
            values.step_by(n_head_kv * head_dim).fold(0f32, |max, v| max.max(v.abs()))
        };
        let one: Vec<f32> =
            (0..n_head).flat_map(|head| (0..head_dim).map(move |i| size(head, i))).collect();
        one.repeat(self.step.n_tokens as usize)
    }

    /// Checks all three kernels; `attention_decode` only if the tokens are few.
    async fn check(&self) {
        self.check_kernel(device(), "attention", ATTENTION).await;
        self.check_kernel(device(), "attention_prefill", |p, q, cache, out| {
            p.attention_prefill(q, cache, out);
        })
        .await;
        if self.step.n_tokens as usize <= self.step.rows.len() {
            on_each_device(async |gpu| {
                self.check_kernel(gpu, "attention_decode", ATTENTION_DECODE).await
            })
            .await;
        }
    }

    async fn check_kernel(&self, gpu: &Gpu, name: &str, kernel: Attention) {
        let found = merged(gpu, self, &self.partials(gpu, kernel)).await;
        let what = format!("{:?}, {:?}", self.shape, self.step);
        // A score of about ten is off by one or two times 1e-6 in f32. Its exponential is off by as
        // much, relatively.
        let sizes = self.sizes();
        assert_close((name, &what), &found, &self.expected(), 5e-6, |i| sizes[i]);
    }
}

/// The merged output of all splits, in f64.
pub(crate) async fn merged(gpu: &Gpu, case: &Case, partials: &Partials) -> Vec<f32> {
    let (sums, ml) = (read(gpu, &partials.sums).await, read(gpu, &partials.max_total).await);
    let AttentionShape { n_head, head_dim, .. } = case.shape;
    let n_splits = case.step.n_splits as usize;
    let mut out = Vec::new();
    for token in 0..case.step.n_tokens as usize {
        for head in 0..n_head {
            let of = |split: usize| (token * n_splits + split) * n_head + head;
            let largest = (0..n_splits).map(|s| ml[of(s)][0]).fold(f32::NEG_INFINITY, f32::max);
            let share = |s: usize| f64::from(ml[of(s)][0] - largest).exp();
            let total: f64 = (0..n_splits).map(|s| share(s) * f64::from(ml[of(s)][1])).sum();
            out.extend((0..head_dim).map(|i| {
                let value = |s: usize| share(s) * f64::from(sums[of(s) * head_dim + i]);
                ((0..n_splits).map(value).sum::<f64>() / total) as f32
            }));
        }
    }
    out
}

pub(crate) const ATTENTION: Attention = |p, q, cache, out| p.attention(q, cache, out, false);
pub(crate) const ATTENTION_DECODE: Attention = |p, q, cache, out| p.attention_decode(q, cache, out);

pub(crate) fn step(pos: u32, n_tokens: u32, split_len: u32) -> Step {
    let len = pos + n_tokens;
    Step { pos, n_tokens, n_splits: len.div_ceil(split_len), split_len, ..Step::default() }
        .with_rows()
}

/// Heads and KV heads in groups of 1 to 6, and heads of several sizes.
const SHAPES: [(usize, usize, usize); 9] = [
    (2, 2, 64),
    (4, 2, 64),
    (4, 1, 64),
    (8, 2, 128),
    (6, 2, 256),
    (6, 3, 96),
    (3, 1, 96),
    (5, 1, 8),
    (6, 1, 72),
];

/// `(pos, n_tokens, split_len)`. One token after contexts of about a tile, in one split and in
/// several. Several tokens, where each sees only its past. Splits that begin after the last
/// position that a token sees.
pub(crate) const STEPS: [(u32, u32, u32); 15] = [
    (0, 1, 64),
    (62, 1, 64),
    (63, 1, 64),
    (64, 1, 64),
    (127, 1, 128),
    (128, 1, 256),
    (191, 1, 256),
    (699, 1, 64),
    (699, 1, 700),
    (0, 5, 5),
    (60, 9, 69),
    (60, 9, 16),
    (0, 70, 64),
    (300, 33, 128),
    (31, 17, 48),
];

/// Every shape takes a third of the steps, and every step a third of the shapes.
pub(crate) async fn attention_sees_the_past_in_all_splits() {
    let mut random = Random(8);
    for (i, (n_head, n_head_kv, head_dim)) in SHAPES.into_iter().enumerate() {
        for (j, (pos, n_tokens, split_len)) in STEPS.into_iter().enumerate() {
            if (i + j) % 3 != 0 {
                continue;
            }
            let kv = kv(head_dim, (i + j) / 3);
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv };
            Case::new(shape, step(pos, n_tokens, split_len), &mut random).check().await;
        }
    }
}

pub(crate) async fn attention_of_wide_queries_sees_the_past() {
    let mut random = Random(19);
    for (n_head, n_head_kv, head_dim) in [(24, 8, 128), (11, 11, 256)] {
        let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::F16 };
        for (pos, n_tokens, split_len) in [(0, 1, 64), (299, 1, 64), (299, 1, 320), (60, 5, 64)] {
            Case::new(shape, step(pos, n_tokens, split_len), &mut random).check().await;
        }
    }
}

/// The types in turn. Heads that int8 does not take are f16.
fn kv(head_dim: usize, turn: usize) -> KvType {
    match KvType::ALL[turn % 3].1 {
        KvType::Int8 if !head_dim.is_multiple_of(16) => KvType::F16,
        kv => kv,
    }
}

/// Where attention norms, rotates and stores what is new, everything has the bits of steps of their own. The
/// cache has no numbers yet where the key and the value come.
pub(crate) async fn norm_attention_decode_equals_its_two_steps() {
    let checked = Cell::new(0);
    let check = async |gpu: &Gpu| {
        let mut random = Random(23);
        let shapes = [(2, 2, 64), (4, 1, 64), (8, 2, 128), (6, 2, 128), (3, 1, 128)];
        for (i, (n_head, n_head_kv, head_dim)) in shapes.into_iter().enumerate() {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::ALL[i % 2].1 };
            if !shape.norms_in_attention(gpu) {
                continue;
            }
            for (pos, split_len) in [(0, 64), (63, 64), (64, 64), (128, 256), (699, 64), (699, 700)]
            {
                checked.set(checked.get() + 1);
                let case = Case::new(shape, step(pos, 1, split_len), &mut random);
                // Another text's positions come first.
                let first = 3;
                let step = Step { first, ..case.step }.with_rows();
                let n_qkv = (n_head + 2 * n_head_kv) * head_dim;
                let products = (0..n_qkv).map(|_| 6.0 * random.float() - 3.0).collect::<Vec<_>>();
                let qkv = gpu.upload("qkv", &products);
                let weights = hard_weight(2 * head_dim, &mut random);
                let norms = Norm { weight: gpu.upload("norms", &weights), eps: 1e-6 };
                let table = gpu.upload("rope_table", &rope_table(pos as usize + 1, head_dim));
                let q = gpu.upload("q", &vec![f32::NAN; n_head * head_dim]);
                let outputs = [(); 2].map(|()| {
                    let [keys, values] = [&case.k, &case.v].map(|of| {
                        let others = vec![u32::MAX; first as usize * shape.row_words()];
                        let mut rows = [others, case.rows(of)].concat();
                        rows[(first + pos) as usize * shape.row_words()..].fill(u32::MAX);
                        gpu.upload("cache", &rows)
                    });
                    (KvCache { shape, keys, values }, case.empty_partials(gpu))
                });
                let [(cache, partials), (expected_cache, expected)] = &outputs;
                let mut recorder = Recorder::new(gpu, &gpu.upload("step", &[step]));
                recorder.norm_attention_decode(&qkv, &norms, &table, cache, partials);
                let plan = recorder.finish();
                let further = Step { pos: pos + 1, ..step };
                let more = plan.bytes(&further) - plan.bytes(&step);
                assert_eq!(more, 2 * shape.cache_bytes(1) as u64);
                gpu.run(&[&plan], &step);
                run(gpu, &step, |p| {
                    p.norm_rope_kv(&qkv, &norms, &table, &q, expected_cache, true);
                    p.attention_decode(&q, expected_cache, expected);
                });
                let what = format!("{shape:?}, {pos} in splits of {split_len}");
                assert_eq!(
                    read(gpu, &cache.keys).await,
                    read(gpu, &expected_cache.keys).await,
                    "{what}"
                );
                assert_eq!(
                    read(gpu, &cache.values).await,
                    read(gpu, &expected_cache.values).await,
                    "{what}"
                );
                assert_eq!(
                    read(gpu, &partials.max_total).await,
                    read(gpu, &expected.max_total).await,
                    "{what}"
                );
                assert_eq!(
                    read(gpu, &partials.sums).await,
                    read(gpu, &expected.sums).await,
                    "{what}"
                );
            }
        }
    };
    on_each_device_and_as_cards(&check).await;
    let can = device().subgroups.is_some_and(|Subgroups(lanes)| lanes >= 8);
    assert_eq!(checked.get() > 0, can);
}

/// The last of 32 768 positions, in splits as long as a step has.
pub(crate) async fn attention_reaches_far_into_a_long_context() {
    let mut random = Random(18);
    let shape = AttentionShape { n_head: 2, n_head_kv: 1, head_dim: 64, kv: KvType::Int8 };
    Case::new(shape, step(32_767, 1, 2816), &mut random).check().await;
}

pub(crate) async fn attention_handles_extreme_scores() {
    let mut random = Random(9);
    // High scores in each tile; a single high score; none, so that all are equal.
    let periods = [7, 690, 5000].into_iter().cycle();
    for (i, ((n_head, n_head_kv, head_dim), period)) in SHAPES.into_iter().zip(periods).enumerate()
    {
        let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: kv(head_dim, i / 3) };
        Case::extreme(shape, step(699, 1, 64), period, &mut random).check().await;
        Case::extreme(shape, step(699, 1, 700), period, &mut random).check().await;
    }
}

pub(crate) async fn merges_take_the_mean() {
    let mut random = Random(17);
    for (n_head, n_head_kv, head_dim) in [(2, 1, 64), (20, 5, 128), (4, 2, 96), (4, 2, 256)] {
        let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::F16 };
        for (pos, n_tokens, split_len) in STEPS {
            let case = Case::new(shape, step(pos, n_tokens, split_len), &mut random);
            let partials = case.partials(device(), ATTENTION);
            let (n_tokens, k) = (n_tokens as usize, n_head * head_dim);
            let y = device().upload("y", &vec![f32::NAN; n_tokens * k]);
            let q = groups(device(), n_tokens, k);
            run(device(), &case.step, |p| {
                p.merge_splits(&partials, &y);
                p.merge_quantize(&partials, &q);
            });
            // The expected values come from the GPU's partials: attention has its own test.
            let expected = merged(device(), &case, &partials).await;
            let what = format!("{shape:?}, {:?}", case.step);
            let size = |i: usize| expected[i].abs().max(1.0);
            assert_close(("merge_splits", &what), &read(device(), &y).await, &expected, 2e-6, size);
            // Both kernels merge alike.
            check_groups(
                device(),
                ("merge_quantize", &what),
                &q,
                (&read(device(), &y).await, k),
                1e-4,
            )
            .await;
        }
    }
}

pub(crate) async fn attention_merge_norms_and_quantizes() {
    on_each_device(async |gpu| {
        let mut random = Random(10);
        for (n_head, n_head_kv, head_dim) in [(2, 1, 64), (20, 5, 128), (4, 2, 96)] {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::F16 };
            for (pos, n_tokens, split_len) in STEPS {
                let case = Case::new(shape, step(pos, n_tokens, split_len), &mut random);
                let n = n_head * head_dim;
                let weight: Vec<f32> =
                    (0..n).map(|i| if i % 50 == 9 { -8.0 } else { random.float() }).collect();
                let partials = case.partials(gpu, ATTENTION);
                let y = quantized(gpu, n, n_tokens as usize);
                let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
                run(gpu, &case.step, |p| p.attention_merge(&partials, Some(&norm), &y));
                // The expected values come from the GPU's partials: attention has its own test.
                let normed = ops::rms_norm(&merged(gpu, &case, &partials).await, &weight, 1e-5);
                let what = format!("{shape:?}, {:?}", case.step);
                check_quantized(gpu, ("attention_merge", &what), &y, &normed, n).await;
            }
        }
    })
    .await;
}

/// Each row of a step is attended as alone: at its own position, in its own range of the cache and in
/// its own splits. Splits that only another row has add nothing.
pub(crate) async fn texts_in_rows_are_attended_as_alone() {
    let shape = AttentionShape { n_head: 4, n_head_kv: 2, head_dim: 64, kv: KvType::F16 };
    let mut random = Random(3);
    let cases: Vec<Case> = [(200, 64), (0, 64), (129, 128)]
        .map(|(pos, split_len)| Case::new(shape, step(pos, 1, split_len), &mut random))
        .into();
    let n_splits = cases.iter().map(|case| case.step.n_splits).max().unwrap();
    let mut all = Step { n_tokens: 3, n_splits, ..Step::default() };
    let mut first = 0;
    for (case, row) in cases.iter().zip(&mut all.rows) {
        let Step { pos, split_len, .. } = case.step;
        *row = Row { pos, first, split_len, token: 0 };
        first += pos + 1;
    }
    let all_of = |values: fn(&Case) -> &Vec<f32>| cases.iter().flat_map(values).copied().collect();
    let (q, k, v) = (all_of(|case| &case.q), all_of(|case| &case.k), all_of(|case| &case.v));
    let joined = Case { shape, step: all, q, k, v };
    let attention: Attention = |p, q, cache, out| p.attention(q, cache, out, true);
    on_each_device(async |gpu| {
        for kernel in [attention, ATTENTION_DECODE] {
            let found = joined.partials(gpu, kernel);
            let (sums, max_total) =
                (read(gpu, &found.sums).await, read(gpu, &found.max_total).await);
            let sums = sums.chunks(n_splits as usize * shape.n_head * shape.head_dim);
            let rows = sums.zip(max_total.chunks(n_splits as usize * shape.n_head));
            for (case, (sums, max_total)) in cases.iter().zip(rows) {
                let alone = case.partials(gpu, kernel);
                let (its_sums, its) =
                    (read(gpu, &alone.sums).await, read(gpu, &alone.max_total).await);
                assert_eq!(sums[..its_sums.len()], its_sums);
                assert_eq!(max_total[..its.len()], its);
                assert!(max_total[its.len()..].iter().all(|rest| *rest == [-1e30, 0.0]));
            }
        }
    })
    .await;
}
