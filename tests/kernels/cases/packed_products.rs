//! Packed matrices: `gemv_packed`, `gemv_packed_floats` and `gemm_packed` multiply, `embed_packed`
//! looks rows up. `quantize_groups` and `rms_norm_quantize_groups` make the int8 activations. For a
//! single token, `stream_packed` and `norm_gated_packed` also make what the next product needs, as
//! `stream_of_last` does for the first one. `norm_gemv_packed` and `norm_gemv_heads_packed` take it.

use tritloom::blocks::pack;
use tritloom::gpu::Gpu;
use tritloom::kernels::{
    AttentionShape, Format, Heads, KvCache, KvType, MIN_LANES, Norm, Packed, PackedShard, Product,
    QuantizedGroups, Scales, Stream,
};
use tritloom::model::Activation;
use tritloom::reference::ops;

use super::attention::{self, ATTENTION, Case};
use super::device::{
    assert_close, device, of_16_lanes, on_each_device, on_each_device_and_as_cards, read,
    read_both, run, step, without_packed_dot,
};

use super::random::Random;
use super::rms_norm::{hard_rows, hard_weight};
use super::rope_kv::{self, rope_table};
use super::ternary_products::{BEFORE, cuts};

/// A format of each kind: every number of bits, every kind of scale, groups of all sizes.
const FORMATS: [Format; 8] = [
    Format { bits: 2, group: 64, zero: 1, scales: Scales::F16 },
    Format { bits: 2, group: 128, zero: 1, scales: Scales::F16 },
    Format { bits: 2, group: 256, zero: 1, scales: Scales::F16 },
    Format { bits: 1, group: 128, zero: 1, scales: Scales::F16 },
    Format { bits: 4, group: 32, zero: 8, scales: Scales::F16 },
    Format { bits: 4, group: 32, zero: 0, scales: Scales::F32WithOffset },
    Format { bits: 8, group: 32, zero: 128, scales: Scales::F16 },
    Format { bits: 8, group: 16, zero: 128, scales: Scales::Factors(16) },
];

/// `k` and rows: a single row, rows with an odd number of groups and a lane's last step cut short,
/// more rows than a workgroup has. Each format takes one of them: pipelines are slow to compile.
const SHAPES: [(usize, usize); 3] = [(256, 1), (768, 63), (2304, 300)];

const FACTOR: f32 = 0.25;

/// The smallest f16 above 0.
const MIN_F16: f32 = 1.0 / 16_777_216.0;

/// The error of f32 sums of a few thousand products, of which each has about five roundings.
const RELATIVE: f32 = 4e-6;

/// The codes and scales of a matrix, and its values `[matrices, rows, k]`.
struct Matrix {
    format: Format,
    k: usize,
    rows: usize,
    matrices: usize,
    codes: Vec<u8>,
    /// Of each group.
    scales: Vec<[f32; 2]>,
}

impl Matrix {
    fn new(format: Format, k: usize, rows: usize, matrices: usize, random: &mut Random) -> Self {
        let n = matrices * rows * k;
        let mut code = || match format.bits {
            1 => 2 * random.below(2),
            2 => random.below(3),
            bits => random.below(1 << bits),
        };
        let codes = (0..n).map(|_| code() as u8).collect();
        let scales = (0..n / format.group)
            .map(|group| {
                let scale = half::f16::from_f32(random.float() - 0.3).to_f32();
                match (format.scales, group) {
                    (Scales::Factors(together), _) => {
                        let (of_all, factor) = factors(together, group);
                        [of_all.to_f32() * f32::from(factor), 0.0]
                    }
                    // A group of zeros, and one of tiny values.
                    (_, 0) => [0.0; 2],
                    (_, 1) => [MIN_F16, 0.0],
                    (Scales::F16, _) => [scale, 0.0],
                    (Scales::F32WithOffset, _) => [scale * 17.0, random.float() - 0.5],
                }
            })
            .collect();
        Self { format, k, rows, matrices, codes, scales }
    }

    fn values(&self) -> Vec<f32> {
        let groups = self.codes.chunks(self.format.group).zip(&self.scales);
        let value = |code: u8, [scale, offset]: [f32; 2]| {
            scale * (i32::from(code) - self.format.zero) as f32 - offset
        };
        groups
            .flat_map(|(codes, &group)| codes.iter().map(move |&code| value(code, group)))
            .collect()
    }

    /// The matrix on a GPU, cut before the rows in `cuts`.
    fn upload(&self, gpu: &Gpu, cuts: &[usize]) -> Packed {
        let Self { format, k, rows, matrices, .. } = *self;
        let in_shard = |rows: std::ops::Range<usize>| {
            (0..matrices).flat_map(move |m| rows.clone().map(move |row| m * self.rows + row))
        };
        let scales_of = |row: usize| -> Vec<u32> {
            let groups = row * k / format.group..(row + 1) * k / format.group;
            let scales = &self.scales[groups.clone()];
            match format.scales {
                Scales::F16 => pairs(scales.iter().map(|s| half::f16::from_f32(s[0]))),
                Scales::Factors(together) => {
                    let factors = groups.map(|group| factors(together, group));
                    let of_all = factors.clone().step_by(together).map(|(of_all, _)| of_all);
                    let mut words = pairs(of_all);
                    let bytes: Vec<u8> = factors.map(|(_, factor)| factor as u8).collect();
                    words.extend(bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)));
                    words
                }
                Scales::F32WithOffset => scales.iter().flatten().map(|v| v.to_bits()).collect(),
            }
        };
        let mut first = 0;
        let shards = cuts.iter().copied().chain([rows]).map(|end| {
            let rows = first..end;
            first = end;
            let codes = |row: usize| pack(format.bits, &self.codes[row * k..][..k]);
            let codes: Vec<u32> = in_shard(rows.clone()).flat_map(codes).collect();
            let scales: Vec<u32> = in_shard(rows.clone()).flat_map(scales_of).collect();
            PackedShard {
                codes: gpu.upload("codes", &codes),
                scales: gpu.upload("scales", &scales),
                rows,
            }
        });
        let shards = shards.collect();
        Packed { k, rows, matrices, format, factor: FACTOR, shards }
    }

    /// The product with every row of `x`, and the size of its terms.
    fn times(&self, x: &[f32], product: Product) -> (Vec<f32>, Vec<f32>) {
        let values = self.values();
        let sizes: Vec<f32> = values.iter().map(|v| v.abs()).collect();
        // The share of the codes' zero, which kernels add and take away again: codes count from 0.
        let groups = self.codes.chunks(self.format.group).zip(&self.scales);
        let of_zero: Vec<f32> = groups
            .flat_map(|(codes, [scale, offset])| {
                let zero = self.format.zero as f32 * scale.abs() + offset.abs();
                codes.iter().map(move |_| zero)
            })
            .collect();
        let (mut y, mut size) = (Vec::new(), Vec::new());
        for x in x.chunks(self.k) {
            let abs: Vec<f32> = x.iter().map(|x| x.abs()).collect();
            let v = ops::matvec_f32(&values, self.k, x);
            let s = ops::matvec_f32(&sizes, self.k, &abs);
            let z = ops::matvec_f32(&of_zero, self.k, &abs);
            for row in 0..self.rows {
                let terms = s[row] + z[row];
                let (found, terms) = match product {
                    Product::Store => (FACTOR * v[row], terms),
                    Product::Add => (BEFORE + FACTOR * v[row], terms + BEFORE),
                    Product::Gated(activation) => {
                        let up = self.rows + row;
                        let gated = ops::gated(activation, &[v[row]], &[v[up]])[0];
                        // The slopes of the activations are at most about 1.1.
                        let terms = 1.2 * terms * (v[up].abs() + s[up] + z[up]) + gated.abs();
                        (FACTOR * gated, terms)
                    }
                };
                y.push(found);
                size.push(terms);
            }
        }
        (y, size)
    }
}

/// The f16 that a group shares with `together` - 1 others, and its own factor. Every factor occurs, and
/// f16 of all kinds.
fn factors(together: usize, group: usize) -> (half::f16, i8) {
    let of_all = [0.02, -0.07, MIN_F16, 0.0, 1.3][group / together % 5];
    (half::f16::from_f32(of_all), (37 * group) as i8)
}

/// Two f16 in a word. The last one may be alone.
fn pairs(halves: impl Iterator<Item = half::f16>) -> Vec<u32> {
    let bits: Vec<u32> = halves.map(|half| u32::from(half.to_bits())).collect();
    bits.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |second| second << 16)).collect()
}

/// The int8 activations of `x`, and the values that they stand for.
fn quantize(x: &[f32]) -> (Vec<i8>, Vec<[f32; 2]>, Vec<f32>) {
    let (mut q, mut scales, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for group in x.chunks(32) {
        let largest = group.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let scale = largest / 127.0;
        let per = if largest > 1e-30 { 127.0 / largest } else { 0.0 };
        let codes: Vec<i8> =
            group.iter().map(|x| (x * per).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
        let sum: i32 = codes.iter().map(|&code| i32::from(code)).sum();
        scales.push([scale, scale * sum as f32]);
        values.extend(codes.iter().map(|&code| f32::from(code) * scale));
        q.extend(codes);
    }
    (q, scales, values)
}

fn upload_groups(gpu: &Gpu, x: &[f32], k: usize) -> (QuantizedGroups, Vec<f32>) {
    let (q, scales, mut values) = quantize(x);
    let (mut words, mut padded) = (Vec::new(), Vec::new());
    for (q, scales) in q.chunks(k).zip(scales.chunks(k / 32)) {
        let mut row = vec![0; QuantizedGroups::words(k)];
        for (i, four) in q.chunks(4).enumerate() {
            row[QuantizedGroups::word_at(i)] =
                bytemuck::pod_read_unaligned(bytemuck::cast_slice(four));
        }
        words.extend(row);
        padded.extend_from_slice(scales);
        padded.resize(padded.len().next_multiple_of(2), [0.0; 2]);
    }
    let factors: Vec<f32> = (0..x.len() / k).map(|token| 0.5 + token as f32).collect();
    for (values, factor) in values.chunks_mut(k).zip(&factors) {
        values.iter_mut().for_each(|value| *value *= factor);
    }
    let groups = QuantizedGroups {
        q: gpu.upload("q", &words),
        scale: gpu.upload("q_scale", &padded),
        factor: gpu.upload("q_factor", &factors),
    };
    (groups, values)
}

/// The int8 values `[n_tokens, k]` of `y`, and their scales `[n_tokens, k / 32]`, times the factors.
async fn read_groups(gpu: &Gpu, y: &QuantizedGroups, k: usize) -> (Vec<i8>, Vec<[f32; 2]>) {
    let words = read(gpu, &y.q).await;
    let in_order = words.chunks(QuantizedGroups::words(k));
    let in_order: Vec<u32> =
        in_order.flat_map(|row| (0..k / 4).map(|i| row[QuantizedGroups::word_at(i)])).collect();
    let (scales, factors) = (read(gpu, &y.scale).await, read(gpu, &y.factor).await);
    let rows = scales.chunks(QuantizedGroups::scales(k)).zip(&factors);
    let scales = rows.flat_map(|(row, f)| row[..k / 32].iter().map(move |s| s.map(|s| s * f)));
    (bytemuck::pod_collect_to_vec(&in_order), scales.collect())
}

/// Every format takes a product, a shape and, with `several`, a number of tokens.
async fn check_products(gpu: &Gpu, several: bool, floats: bool) {
    const PRODUCTS: [Product; 5] = [
        Product::Store,
        Product::Add,
        Product::Gated(Activation::Silu),
        Product::Gated(Activation::Gelu),
        Product::Gated(Activation::Relu2),
    ];
    let mut random = Random(11);
    for (i, format) in FORMATS.into_iter().enumerate() {
        // Codes of 2 bits take every shape, those of 4 and of 8 two of them.
        let (k, rows) = SHAPES[(i + (i + 1) / 4) % SHAPES.len()];
        let product = PRODUCTS[i % PRODUCTS.len()];
        let n_tokens = if several { [2, 3, 5, 8][i % 4] } else { 1 };
        let matrix = Matrix::new(format, k, rows, product.matrices(), &mut random);
        let cuts = cuts(rows, i);
        let w = matrix.upload(gpu, &cuts);
        let x: Vec<f32> = (0..n_tokens * k).map(|_| 2.0 * random.float() - 1.0).collect();
        // One value more than there are rows: nothing may be written to it.
        let y = gpu.upload("y", &vec![BEFORE; n_tokens * rows + 1]);
        let x = if floats {
            let d_x = gpu.upload("x", &x);
            run(gpu, &step(3, n_tokens), |p| {
                p.gemv_packed_floats(&w, &d_x, &y, product, several);
            });
            x
        } else {
            let (groups, values) = upload_groups(gpu, &x, k);
            run(gpu, &step(3, n_tokens), |p| {
                p.gemv_packed(&w, &groups, &y, product, several);
            });
            values
        };
        let (mut expected, mut size) = matrix.times(&x, product);
        expected.push(BEFORE);
        size.push(0.0);
        let what = format!("{format:?}, {k} x {rows}, {n_tokens} tokens, {product:?}, {cuts:?}");
        let kernel = if floats { "gemv_packed_floats" } else { "gemv_packed" };
        assert_close((kernel, &what), &read(gpu, &y).await, &expected, RELATIVE, |i| size[i]);
    }
}

pub(crate) async fn gemv_packed_multiplies_every_format() {
    on_each_device_and_as_cards(async |gpu| check_products(gpu, false, false).await).await;
    check_products(without_packed_dot(), false, false).await;
}

pub(crate) async fn gemv_packed_of_several_tokens_multiplies_every_format() {
    on_each_device_and_as_cards(async |gpu| check_products(gpu, true, false).await).await;
}

pub(crate) async fn gemv_packed_floats_multiplies_every_format() {
    on_each_device_and_as_cards(async |gpu| {
        check_products(gpu, false, true).await;
        check_products(gpu, true, true).await;
    })
    .await;
}

/// A token gives the same bits alone and among others: a draft pass must choose as single steps do.
pub(crate) async fn a_token_gives_the_same_bits_among_others() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(12);
        for format in FORMATS {
            let (k, rows, n_tokens) = (768, 65, 5);
            let w = Matrix::new(format, k, rows, 1, &mut random).upload(gpu, &[]);
            let x: Vec<f32> = (0..n_tokens * k).map(|_| 2.0 * random.float() - 1.0).collect();
            let (groups, _) = upload_groups(gpu, &x, k);
            let all = gpu.upload("y", &vec![0f32; n_tokens * rows]);
            run(gpu, &step(0, n_tokens), |p| {
                p.gemv_packed(&w, &groups, &all, Product::Store, true);
            });
            let (all, factors) = (read(gpu, &all).await, read(gpu, &groups.factor).await);
            for (token, x) in x.chunks(k).enumerate() {
                let (groups, _) = upload_groups(gpu, x, k);
                gpu.write(&groups.factor, 0, &[factors[token]]);
                let one = gpu.upload("y", &vec![0f32; rows]);
                run(gpu, &step(0, 1), |p| {
                    p.gemv_packed(&w, &groups, &one, Product::Store, false);
                });
                assert_eq!(
                    read(gpu, &one).await,
                    all[token * rows..][..rows],
                    "{format:?}, {token}"
                );
            }
        }
    })
    .await;
}

pub(crate) async fn embed_packed_looks_rows_up() {
    on_each_device(async |gpu| {
        let mut random = Random(13);
        for format in FORMATS {
            for (k, rows) in [(256, 1), (768, 70)] {
                let matrix = Matrix::new(format, k, rows, 1, &mut random);
                let cuts: &[usize] = if rows > 3 { &[20, 21, rows - 1] } else { &[] };
                let w = matrix.upload(gpu, cuts);
                let last = rows as u32 - 1;
                let ids = [0, 19, 20, 21, 22, last, 19, 0].map(|id: u32| id.min(last));
                let x = gpu.upload("x", &vec![f32::NAN; ids.len() * k]);
                let tokens = gpu.upload("tokens", &ids);
                run(gpu, &step(0, ids.len()), |p| p.embed_packed(&tokens, &w, 12.0, &x, false));
                let values = matrix.values();
                let expected: Vec<f32> = ids
                    .iter()
                    .flat_map(|&id| &values[id as usize * k..][..k])
                    .map(|value| 12.0 * value)
                    .collect();
                let largest = |i: usize| expected[i].abs().max(1.0);
                assert_close(
                    ("embed_packed", &format!("{format:?}")),
                    &read(gpu, &x).await,
                    &expected,
                    4e-7,
                    largest,
                );
            }
        }
    })
    .await;
}

pub(crate) async fn embed_stream_gives_what_embed_packed_and_stream_of_last_give() {
    on_each_device_and_as_cards(async |gpu| {
        if gpu.tuning.lanes < MIN_LANES {
            return;
        }
        let mut random = Random(31);
        let (k, rows) = (768, 70);
        for format in FORMATS {
            let w = Matrix::new(format, k, rows, 1, &mut random).upload(gpu, &[20, 21]);
            let norm =
                Norm { weight: gpu.upload("weight", &hard_weight(k, &mut random)), eps: 1e-6 };
            for id in [0, 19, 20, 21, rows as u32 - 1] {
                let tokens = gpu.upload("tokens", &[7, 7, id]);
                let mut step = step(3, 1);
                step.rows[0].token = 2;
                let x = [(); 2].map(|()| gpu.upload("x", &vec![f32::NAN; k]));
                let streams = [(); 2].map(|()| stream(gpu, k));
                run(gpu, &step, |p| {
                    p.embed_stream(&tokens, &w, 12.0, &norm, &x[0], &streams[0]);
                    p.embed_packed(&tokens, &w, 12.0, &x[1], true);
                    p.stream_of_last(&x[1], &norm, &streams[1]);
                });
                assert_eq!(read(gpu, &x[0]).await, read(gpu, &x[1]).await, "{format:?}, {id}");
                let words = read_both(gpu, streams.each_ref().map(|stream| &stream.words)).await;
                assert_eq!(words[0], words[1], "{format:?}, {id}");
            }
        }
    })
    .await;
}

pub(crate) async fn quantize_groups_rounds_each_group_by_its_own_scale() {
    on_each_device(async |gpu| {
        let mut random = Random(14);
        for k in [32, 96, 2560, 9728] {
            let x = hard_rows(k, &mut random);
            let n_tokens = x.len() / k;
            let y = groups(gpu, n_tokens, k);
            let d_x = gpu.upload("x", &x);
            run(gpu, &step(0, n_tokens), |p| p.quantize_groups(&d_x, k, &y));
            check_groups(gpu, ("quantize_groups", &format!("{k} values")), &y, (&x, k), NEAR_HALF)
                .await;
        }
    })
    .await;
}

/// How near to a half a value must be that a kernel may round the other way.
const NEAR_HALF: f64 = 1e-4;

/// Asserts that `y` is the quantisation of `x`.
pub(crate) async fn check_groups(
    gpu: &Gpu,
    (kernel, what): (&str, &str),
    y: &QuantizedGroups,
    (x, k): (&[f32], usize),
    near_half: f64,
) {
    let (q, scales, _) = quantize(x);
    let (found, found_scales) = read_groups(gpu, y, k).await;
    for (i, (group, scale)) in x.chunks(32).zip(found_scales).enumerate() {
        let (expected, found) = (&q[32 * i..][..32], &found[32 * i..][..32]);
        for at in 0..32 {
            let value = f64::from(group[at]) / (f64::from(scales[i][0]) + 1e-300);
            let tips = (value.abs().fract() - 0.5).abs() < near_half;
            let off = (i32::from(found[at]) - i32::from(expected[at])).abs();
            assert!(off == 0 || tips && off == 1, "{what}, group {i}: {found:?} {expected:?}");
        }
        let sum: i32 = found.iter().map(|&q| i32::from(q)).sum();
        let of_group = format!("{what}, scale of group {i}");
        let expected = scales[i][0];
        assert_close(
            (kernel, &of_group),
            &[scale[0]],
            &[expected],
            near_half as f32 / 20.0,
            |_| expected.abs(),
        );
        let sum = scale[0] * sum as f32;
        assert!((scale[1] - sum).abs() <= 1e-6 * sum.abs(), "{what}, group {i}: {scale:?}");
    }
}

/// Buffers for `n_tokens` of `k` quantised values.
pub(crate) fn groups(gpu: &Gpu, n_tokens: usize, k: usize) -> QuantizedGroups {
    QuantizedGroups {
        q: gpu.upload("q", &vec![u32::MAX; n_tokens * QuantizedGroups::words(k)]),
        scale: gpu.upload("q_scale", &vec![[f32::NAN; 2]; n_tokens * QuantizedGroups::scales(k)]),
        factor: gpu.upload("q_factor", &vec![f32::NAN; n_tokens]),
    }
}

pub(crate) async fn rms_norm_quantize_groups_norms_first() {
    on_each_device(async |gpu| {
        let mut random = Random(15);
        for k in [32, 96, 2560, 9728] {
            let (x, weight) = (hard_rows(k, &mut random), hard_weight(k, &mut random));
            let n_tokens = x.len() / k;
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-6 };
            let (y, last) = (groups(gpu, n_tokens, k), groups(gpu, 1, k));
            let d_x = gpu.upload("x", &x);
            run(gpu, &step(0, n_tokens), |p| {
                p.rms_norm_quantize_groups(&d_x, &norm, &y);
                p.rms_norm_quantize_groups_of_last(&d_x, &norm, &last);
            });
            let normed = ops::rms_norm(&x, &weight, 1e-6);
            check_groups(
                gpu,
                ("rms_norm_quantize_groups", &format!("{k} values")),
                &y,
                (&normed, k),
                NEAR_HALF,
            )
            .await;
            let (q, scales) = read_groups(gpu, &y, k).await;
            let (last_q, last_scales) = read_groups(gpu, &last, k).await;
            assert_eq!(last_q, q[(n_tokens - 1) * k..]);
            assert_eq!(last_scales, scales[(n_tokens - 1) * k / 32..]);
        }
    })
    .await;
}

/// The formats of 1 and of 2 bits, of which the kernels for cards are. The one of 1 bit takes the last
/// case as well, which is the largest.
fn ternary_formats<T: Copy>(cases: [T; 3]) -> impl Iterator<Item = (Format, T)> {
    let cases = cases.into_iter().chain([cases[2]]);
    FORMATS.into_iter().filter(Format::is_ternary).zip(cases)
}

/// A stream of `k` values that nothing was written to.
fn stream(gpu: &Gpu, k: usize) -> Stream {
    Stream { words: gpu.upload("stream", &vec![u32::MAX; Stream::words(k)]) }
}

/// The kernel that adds to the residual stream also makes the input of the products after the norm.
/// These products give the same bits as products of a norm and of one more step that quantises.
pub(crate) async fn products_of_the_stream_equal_products_of_its_norm() {
    let check = async |gpu: &Gpu| {
        if gpu.tuning.lanes < MIN_LANES {
            return;
        }
        let mut random = Random(16);
        let cases = ternary_formats([(256, 64), (768, 352), (2304, 288usize)]);
        // In gate and up of such rows, a slot has two pairs of rows.
        let wide = (FORMATS[0], (4096, 288));
        for (format, (k, n_ff)) in cases.chain([wide]) {
            let mut matrix =
                |k, rows, matrices| Matrix::new(format, k, rows, matrices, &mut random);
            let n_ff = n_ff.next_multiple_of(format.group);
            let down = matrix(n_ff, k, 1).upload(gpu, &[32, 96]);
            let w = matrix(k, 96, 1).upload(gpu, &[33]);
            let gate_up = matrix(k, n_ff, 2).upload(gpu, &[32]);
            let ff: Vec<f32> = (0..n_ff).map(|_| 2.0 * random.float() - 1.0).collect();
            let (ff, _) = upload_groups(gpu, &ff, n_ff);
            gpu.write(&ff.factor, 0, &[1.0]);
            let before = hard_rows(k, &mut random)[..k].to_vec();
            let weight = hard_weight(k, &mut random);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-6 };
            let x = [(); 2].map(|()| gpu.upload("x", &before));
            let stream = stream(gpu, k);
            let y = [(); 2].map(|()| gpu.upload("y", &[BEFORE; 97]));
            let (q, floats) = (groups(gpu, 1, k), gpu.upload("ff", &vec![0f32; n_ff]));
            let gated = [(); 2].map(|()| groups(gpu, 1, n_ff));
            gpu.write(&gated[0].factor, 0, &[1.0]);
            let activation = Activation::Silu;
            run(gpu, &step(3, 1), |p| {
                p.stream_packed(&down, &ff, &norm, &x[0], &stream);
                p.norm_gemv_packed(&w, &stream, norm.eps, &y[0]);
                p.norm_gated_packed(&gate_up, &stream, norm.eps, activation, &gated[0]);

                p.gemv_packed(&down, &ff, &x[1], Product::Add, false);
                p.rms_norm_quantize_groups(&x[1], &norm, &q);
                p.gemv_packed(&w, &q, &y[1], Product::Store, false);
                p.gemv_packed(&gate_up, &q, &floats, Product::Gated(activation), false);
                p.quantize_groups(&floats, n_ff, &gated[1]);
            });
            assert_eq!(read(gpu, &x[0]).await, read(gpu, &x[1]).await, "{format:?}");
            assert_eq!(read(gpu, &y[0]).await, read(gpu, &y[1]).await, "{format:?}");
            // The last of three tokens makes the same stream.
            let three = [&hard_rows(k, &mut random)[..2 * k], &read(gpu, &x[0]).await].concat();
            let (three, of_last) = (gpu.upload("x", &three), self::stream(gpu, k));
            run(gpu, &step(3, 3), |p| p.stream_of_last(&three, &norm, &of_last));
            assert_eq!(
                read(gpu, &of_last.words).await,
                read(gpu, &stream.words).await,
                "{format:?}"
            );
            // The factor of a matrix is for what is added. It is not applied before quantising.
            let found = read_groups(gpu, &gated[0], n_ff).await;
            let expected = read_groups(gpu, &gated[1], n_ff).await;
            assert_eq!(found.0, expected.0, "{format:?}");
            for (found, expected) in found.1.iter().zip(&expected.1) {
                assert_eq!(found.map(|s| s * FACTOR), *expected, "{format:?}");
            }
        }
    };
    on_each_device_and_as_cards(&check).await;
    check(of_16_lanes()).await;
}

/// The products with whole heads give the bits of the products, the norm and the rotation as steps of
/// their own.
pub(crate) async fn norm_gemv_heads_packed_equals_its_two_steps() {
    let check = async |gpu: &Gpu| {
        let mut random = Random(20);
        let mut checked = 0;
        use KvType::{F16, F32, Int8};
        let cases = [(256, 64, Int8), (768, 128, F32), (2304, 64, F16)];
        for (format, (k, head_dim, kv)) in ternary_formats(cases) {
            let shape = AttentionShape { n_head: 3, n_head_kv: 1, head_dim, kv };
            let n_qkv = 5 * head_dim;
            let w = Matrix::new(format, k, n_qkv, 1, &mut random).upload(gpu, &[2 * head_dim]);
            if gpu.tuning.lanes < MIN_LANES || !w.takes_heads(&gpu.tuning, head_dim) {
                continue;
            }
            checked += 1;
            let down = Matrix::new(format, k, k, 1, &mut random).upload(gpu, &[]);
            let x: Vec<f32> = (0..k).map(|_| 2.0 * random.float() - 1.0).collect();
            let (input, _) = upload_groups(gpu, &x, k);
            let x = gpu.upload("x", &hard_rows(k, &mut random)[..k]);
            let weight = hard_weight(k, &mut random);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-6 };
            let weights = hard_weight(2 * head_dim, &mut random);
            let norms = Norm { weight: gpu.upload("norms", &weights), eps: 1e-6 };
            let rope_table = gpu.upload("rope_table", &rope_table(9, head_dim));
            let outputs = [(); 2].map(|()| {
                let words = shape.cache_bytes(9) / 4;
                let cache = || gpu.upload("cache", &vec![rope_kv::BEFORE; words]);
                let cache = KvCache { shape, keys: cache(), values: cache() };
                (gpu.upload("q", &vec![BEFORE; 3 * head_dim]), cache)
            });
            let [(q, cache), (expected_q, expected_cache)] = &outputs;
            let (stream, qkv) = (stream(gpu, k), gpu.upload("qkv", &vec![BEFORE; n_qkv]));
            run(gpu, &step(7, 1), |p| {
                p.stream_packed(&down, &input, &norm, &x, &stream);
                let heads = Heads { norms: &norms, rope_table: &rope_table, q, cache };
                p.norm_gemv_heads_packed(&w, &stream, norm.eps, &heads);

                p.norm_gemv_packed(&w, &stream, norm.eps, &qkv);
                p.norm_rope_kv(&qkv, &norms, &rope_table, expected_q, expected_cache, true);
            });
            assert_eq!(read(gpu, q).await, read(gpu, expected_q).await, "{format:?}");
            assert_eq!(
                read(gpu, &cache.keys).await,
                read(gpu, &expected_cache.keys).await,
                "{format:?}"
            );
            assert_eq!(
                read(gpu, &cache.values).await,
                read(gpu, &expected_cache.values).await,
                "{format:?}"
            );
        }
        checked
    };
    assert!(check(of_16_lanes()).await > 0);
    on_each_device_and_as_cards(async |gpu| {
        check(gpu).await;
    })
    .await;
}

pub(crate) async fn merge_stream_packed_equals_its_two_steps() {
    let check = async |gpu: &Gpu| {
        if gpu.tuning.lanes < MIN_LANES {
            return;
        }
        let mut random = Random(19);
        let shapes = ternary_formats([(4, 64), (20, 128), (32, 128)]);
        for (i, (format, (n_head, head_dim))) in (0..).zip(shapes) {
            let shape = AttentionShape { n_head, n_head_kv: n_head / 4, head_dim, kv: KvType::F16 };
            let (k, rows) = (n_head * head_dim, 96);
            let w = Matrix::new(format, k, rows, 1, &mut random).upload(gpu, &[32]);
            assert!(w.merges());
            let weight = hard_weight(rows, &mut random);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-6 };
            // Up to four splits, each number has a pipeline of its own.
            for (pos, split_len) in [(0, 64), (64 * (1 + i), 64), (700, 100)] {
                let case = Case::new(shape, attention::step(pos, 1, split_len), &mut random);
                let partials = case.partials(gpu, ATTENTION);
                let x = [(); 2].map(|()| gpu.upload("x", &[BEFORE; 96]));
                let streams = [(); 2].map(|()| stream(gpu, rows));
                let q = groups(gpu, 1, k);
                run(gpu, &case.step, |p| {
                    p.merge_stream_packed(&w, &partials, &norm, &x[0], &streams[0]);

                    p.merge_quantize(&partials, &q);
                    p.stream_packed(&w, &q, &norm, &x[1], &streams[1]);
                });
                assert_eq!(read(gpu, &x[0]).await, read(gpu, &x[1]).await, "{format:?} at {pos}");
                let [found, expected] =
                    read_both(gpu, streams.each_ref().map(|stream| &stream.words)).await;
                assert_eq!(found, expected, "{format:?} at {pos}");
            }
        }
    };
    on_each_device_and_as_cards(&check).await;
    check(of_16_lanes()).await;
}

pub(crate) async fn gemm_packed_multiplies_tiles() {
    for (i, gpu) in [device(), without_packed_dot()].into_iter().enumerate() {
        let mut random = Random(18);
        let cases = [(128, 1, 1), (768, 65, 31), (2304, 130, 70)];
        let products = [Product::Gated(Activation::Silu), Product::Add, Product::Store];
        // The second device leaves the first case out: it has run on the other one.
        for (format, (k, rows, n_tokens)) in ternary_formats(cases).skip(i) {
            let k = k.max(format.group);
            for product in products {
                let matrix = Matrix::new(format, k, rows, product.matrices(), &mut random);
                let cuts = cuts(rows, 1);
                let w = matrix.upload(gpu, &cuts);
                let x: Vec<f32> = (0..n_tokens * k).map(|_| 2.0 * random.float() - 1.0).collect();
                let (x, values) = upload_groups(gpu, &x, k);
                let y = gpu.upload("y", &vec![BEFORE; n_tokens * rows + 1]);
                run(gpu, &step(3, n_tokens), |p| p.gemm_packed(&w, &x, &y, product, n_tokens < 32));
                let (mut expected, mut size) = matrix.times(&values, product);
                expected.push(BEFORE);
                size.push(0.0);
                let what = format!("{format:?}, {k} x {rows}, {n_tokens} tokens, {product:?}");
                assert_close(
                    ("gemm_packed", &what),
                    &read(gpu, &y).await,
                    &expected,
                    RELATIVE,
                    |i| size[i],
                );
            }
        }
    }
}

/// Rows of hard codes with scales that are powers of two or 0: no sum of products with integers is
/// rounded, in whatever order it is added.
fn hard_bits(format: Format, k: usize, rows: usize, matrices: usize) -> Matrix {
    let mut random = Random(21);
    let code = |row: usize, i: usize, random: &mut Random| match row % 5 {
        0 => 0,
        1 => 2,
        2 => 2 * (i % 2),
        3 => 2 * (i / 4 % 2),
        _ => 2 * random.below(2),
    };
    let all = (0..matrices * rows).flat_map(|row| (0..k).map(move |i| (row, i)));
    let codes = all.map(|(row, i)| code(row, i, &mut random) as u8).collect();
    let scales = (0..matrices * rows * k / format.group)
        .map(|group| [[1.0, -0.5, 0.0, 2.0][group % 4], 0.0])
        .collect();
    Matrix { format, k, rows, matrices, codes, scales }
}

/// Every group's largest activation is 127, so its scale is 1: all at the limits, or noise.
fn hard_integers(n_tokens: usize, k: usize) -> Vec<f32> {
    let mut random = Random(22);
    let mut x: Vec<f32> = (0..n_tokens * k)
        .map(|i| match i / k % 4 {
            0 => 127.0,
            1 => -127.0,
            2 => [127.0, -127.0][i % 2],
            _ => random.below(255) as f32 - 127.0,
        })
        .collect();
    x.iter_mut().step_by(32).for_each(|x| *x = 127.0);
    x
}

/// Codes of 1 bit give the bits of the same codes of 2 bits, in every kernel that takes both.
pub(crate) async fn one_bit_gives_what_two_bits_give() {
    // Rows that end within a block of 1024 values, and tokens that do not fill a tile.
    let (k, rows, n_tokens) = (1152, 64, 5);
    let x = hard_integers(n_tokens, k);
    let ids: Vec<u32> = (0..n_tokens as u32).collect();
    let gated = Product::Gated(Activation::Silu);
    let results = async |gpu: &Gpu, bits| {
        let format = Format { bits, ..FORMATS[1] };
        let w = hard_bits(format, k, rows, 1).upload(gpu, &[]);
        let pair = hard_bits(format, k, rows, 2).upload(gpu, &[]);
        let (q, _) = upload_groups(gpu, &x, k);
        let (d_x, tokens) = (gpu.upload("x", &x), gpu.upload("tokens", &ids));
        let y = [(); 5].map(|()| gpu.upload("y", &vec![BEFORE; n_tokens * rows]));
        let embedded = gpu.upload("embedded", &vec![0f32; n_tokens * k]);
        run(gpu, &step(3, n_tokens), |p| {
            p.gemv_packed(&w, &q, &y[0], Product::Add, false);
            p.gemv_packed(&pair, &q, &y[1], gated, true);
            p.gemv_packed_floats(&w, &d_x, &y[2], Product::Store, true);
            p.gemm_packed(&w, &q, &y[3], Product::Store, true);
            p.gemm_packed(&pair, &q, &y[4], gated, false);
            p.embed_packed(&tokens, &w, 12.0, &embedded, false);
        });
        let norm = Norm { weight: gpu.upload("weight", &vec![1f32; rows]), eps: 1e-6 };
        let (sum, stream) = (gpu.upload("x", &vec![BEFORE; rows]), stream(gpu, rows));
        if gpu.tuning.lanes >= MIN_LANES {
            run(gpu, &step(3, 1), |p| p.stream_packed(&w, &q, &norm, &sum, &stream));
        }
        let mut floats = Vec::new();
        for y in y.iter().chain([&embedded, &sum]) {
            floats.push(read(gpu, y).await);
        }
        (floats, read(gpu, &stream.words).await)
    };
    for gpu in [device(), of_16_lanes()] {
        assert_eq!(results(gpu, 1).await, results(gpu, 2).await);
    }
}
