//! `norm_gemv`, `norm_gemv_rope_kv` and `merge_norm_gemv`: products that norm their own input.

use tritloom::gpu::{Buffer, Gpu, Step};
use tritloom::kernels::{AttentionShape, KvCache, KvType, Norm, Product, max_normed_columns};
use tritloom::reference::ops;

use super::attention::{ATTENTION_DECODE, Case, merged};
use super::device::{
    assert_close, on_each_card, on_each_device, read, read_both, run, step, without_packed_dot,
};
use super::random::Random;
use super::rms_norm::{NEAR_HALF, RELATIVE, hard_rows, hard_weight, quantized};
use super::rope_kv::{self, pair, rope_table, values};
use super::ternary_products::{BEFORE, Matrix, PRODUCTS, SCALES, cuts};

/// One token's input, normed and quantised by the reference.
struct Input {
    q: Vec<i8>,
    s: f32,
    /// How many values are so near to a half that a kernel may round them the other way.
    near: f32,
}

impl Input {
    /// Without a `weight`, it is not normed.
    fn new(x: &[f32], weight: Option<&[f32]>) -> Self {
        let h = weight.map_or_else(|| x.to_vec(), |weight| ops::rms_norm(x, weight, 1e-5));
        let (q, s) = ops::quantize(&h);
        let from_half = |h: &f32| {
            let value = f64::from(*h) * f64::from(s);
            (value - value.floor() - 0.5).abs()
        };
        Self { q, s, near: h.iter().filter(|h| from_half(h) < NEAR_HALF).count() as f32 }
    }

    /// The products with the rows of `matrix`, each with its tolerance.
    fn times(&self, matrix: &Matrix) -> Vec<(f32, f32)> {
        let sums = ops::matvec_ternary(&matrix.codes, matrix.k, &self.q);
        let value = |(sum, scale): (i32, &f32)| {
            let v = sum as f32 / self.s * scale;
            (v, self.near / self.s * scale + RELATIVE * v.abs())
        };
        sums.into_iter().zip(&matrix.scale).map(value).collect()
    }
}

/// relu(gate)² · up, with its tolerance: the largest change that the tolerances of gate and up
/// allow.
fn glu(gate: (f32, f32), up: (f32, f32)) -> (f32, f32) {
    let of = |gate: f32, up: f32| gate.max(0.0).powi(2) * up;
    let v = of(gate.0, up.0);
    let off = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
        .map(|(a, b)| (of(gate.0 + a * gate.1, up.0 + b * up.1) - v).abs());
    (v, off.into_iter().fold(RELATIVE * v.abs(), f32::max))
}

/// `expected` has each value with its tolerance.
#[track_caller]
fn check(kernel: &str, what: &str, found: &[f32], expected: &[(f32, f32)]) {
    let (values, allowed): (Vec<f32>, Vec<f32>) = expected.iter().copied().unzip();
    assert_close((kernel, what), found, &values, 1.0, |i| allowed[i]);
}

/// `k` and rows: the least, about a workgroup's rows, the sizes of the 2B-4T model, the longest row
/// that does not count as long.
const SHAPES: [(usize, usize); 6] =
    [(128, 1), (384, 63), (2560, 65), (6912, 33), (640, 200), (8960, 31)];

/// `norm_gemv` with each of the hard rows, with a norm and without one.
async fn check_norm_gemv(
    gpu: &Gpu,
    (k, rows): (usize, usize),
    product: Product,
    cuts: &[usize],
    random: &mut Random,
) {
    let (mut xs, weight) = (hard_rows(k, random), hard_weight(k, random));
    // The largest int8 values, for the largest sums: the matrix has rows of equal codes.
    for largest in [0.7, -0.7] {
        xs.extend(vec![largest; k]);
    }
    let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
    let matrix = Matrix::new(k, rows, product, SCALES[1].0, random);
    let w = matrix.upload(gpu, cuts);
    for (token, x) in xs.chunks(k).enumerate() {
        let d_x = gpu.upload("x", x);
        for has_norm in [true, false] {
            // Only outputs of attention and of gates come without a norm, and are added.
            if !has_norm && product != Product::Add {
                continue;
            }
            // One value more than there are rows: nothing may be written to it.
            let y = gpu.upload("y", &vec![BEFORE; rows + 1]);
            let norm = has_norm.then_some(&norm);
            run(gpu, &step(3, 1), |p| p.norm_gemv(&w, &d_x, norm, &y, product));
            let v = Input::new(x, has_norm.then_some(&weight)).times(&matrix);
            let mut expected: Vec<_> = match product {
                Product::Store => v,
                Product::Add => v.into_iter().map(|(v, off)| (BEFORE + v, off + 1e-7)).collect(),
                Product::Gated(_) => (0..rows).map(|i| glu(v[i], v[rows + i])).collect(),
            };
            expected.push((BEFORE, 0.0));
            let what =
                format!("{k} x {rows}, row {token}, {product:?}, {has_norm}, cut at {cuts:?}");
            check("norm_gemv", &what, &read(gpu, &y).await, &expected);
        }
    }
}

/// Every product, whole and in shards.
pub(crate) async fn norm_gemv_handles_hard_rows() {
    let test = async |gpu: &Gpu| {
        let mut random = Random(21);
        for (i, (k, rows)) in SHAPES.into_iter().enumerate() {
            check_norm_gemv(gpu, (k, rows), PRODUCTS[i % 3], &cuts(rows, i), &mut random).await;
        }
    };
    on_each_device(&test).await;
    test(without_packed_dot()).await;
}

/// Long rows have as many threads as a card allows.
pub(crate) async fn norm_gemv_takes_long_rows() {
    let test = async |gpu: &Gpu| {
        let mut random = Random(24);
        let most = max_normed_columns(&gpu.tuning, gpu.subgroups);
        for (i, k) in [9216, most].into_iter().enumerate() {
            check_norm_gemv(gpu, (k, 35), PRODUCTS[i + 1], &cuts(35, i), &mut random).await;
        }
    };
    on_each_card(&test).await;
    test(without_packed_dot()).await;
}

/// A token must give the same bits in a chunk, which norms it in a dispatch of its own.
pub(crate) async fn products_that_norm_their_input_give_the_same_bits() {
    on_each_card(async |gpu| {
        let mut random = Random(25);
        let rows = 33;
        for k in [2560, 9216] {
            let (xs, weight) = (hard_rows(k, &mut random), hard_weight(k, &mut random));
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
            let matrix = Matrix::new(k, rows, Product::Store, SCALES[1].0, &mut random);
            let w = matrix.upload(gpu, &[]);
            for x in xs.chunks(k) {
                let d_x = gpu.upload("x", x);
                let q = quantized(gpu, k, 1);
                let [one, two]: [Buffer<f32>; 2] =
                    [(); 2].map(|()| gpu.upload("y", &vec![BEFORE; rows]));
                run(gpu, &step(3, 1), |p| {
                    p.norm_gemv(&w, &d_x, Some(&norm), &one, Product::Store);
                    p.rms_norm_quantize(&d_x, &norm, &q);
                    p.gemv_i2s(&w, &q, &two, Product::Store);
                });
                let [one, two] = read_both(gpu, [&one, &two])
                    .await
                    .map(|y| y.into_iter().map(f32::to_bits).collect::<Vec<_>>());
                assert_eq!(one, two, "{k} columns");
            }
        }
    })
    .await;
}

async fn check_qkv(gpu: &Gpu, k: usize, shape: AttentionShape, pos: usize, random: &mut Random) {
    let AttentionShape { n_head, n_head_kv, head_dim, kv } = shape;
    let (n_q, n_kv) = (n_head * head_dim, n_head_kv * head_dim);
    let (x, weight) = (hard_rows(k, random)[..k].to_vec(), hard_weight(k, random));
    let matrix = Matrix::new(k, n_q + 2 * n_kv, Product::Store, SCALES[0].0, random);
    // Each shard ends at the end of a head.
    let w = matrix.upload(gpu, &[head_dim, n_q + n_kv]);
    let n_ctx = pos + 2;
    let before = || gpu.upload("cache", &vec![rope_kv::BEFORE; shape.cache_bytes(n_ctx) / 4]);
    let cache = KvCache { shape, keys: before(), values: before() };
    let q = gpu.upload("q", &vec![f32::NAN; n_q]);
    let d_x = gpu.upload("x", &x);
    let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
    let table = gpu.upload("rope_table", &rope_table(n_ctx, head_dim));
    // The first position of the cache belongs to another text.
    let step = Step { first: 1, ..step(pos, 1) };
    run(gpu, &step, |p| p.norm_gemv_rope_kv(&w, &d_x, &norm, &table, &q, &cache));

    let (mut v, off): (Vec<f32>, Vec<f32>) =
        Input::new(&x, Some(&weight)).times(&matrix).into_iter().unzip();
    ops::rope_halves(&mut v[..n_q + n_kv], &rope_kv::rope(pos, head_dim));
    let f16 = if kv == KvType::F16 { 1.0 / 1024.0 } else { 0.0 };
    let expected = |rows: std::ops::Range<usize>, scale: f32, relative: f32| -> Vec<(f32, f32)> {
        let off = |i: usize| {
            let rotated = pair(&off, head_dim, i) + (4e-7 + relative) * pair(&v, head_dim, i);
            scale * rotated.max(relative * 6.2e-5) // f16's smallest normal number
        };
        rows.map(|i| (v[i] * scale, off(i))).collect()
    };
    let what = format!("{shape:?} at {pos}");
    let scale = 1.0 / (head_dim as f32).sqrt();
    check(
        "norm_gemv_rope_kv",
        &format!("q, {what}"),
        &read(gpu, &q).await,
        &expected(0..n_q, scale, 0.0),
    );
    let caches = [(cache.keys, n_q..n_q + n_kv), (cache.values, n_q + n_kv..n_q + 2 * n_kv)];
    for (cache, rows) in caches {
        let words = read(gpu, &cache).await;
        let per_position = words.len() / n_ctx;
        let written = (pos + 1) * per_position..(pos + 2) * per_position;
        let found = values(&words[written.clone()], &shape);
        check(
            "norm_gemv_rope_kv",
            &format!("rows {rows:?}, {what}"),
            &found,
            &expected(rows, 1.0, f16),
        );
        let untouched = (0..words.len()).filter(|i| !written.contains(i));
        assert!({ untouched }.all(|i| words[i] == rope_kv::BEFORE), "{what}: wrote elsewhere");
    }
}

pub(crate) async fn norm_gemv_rope_kv_rotates_and_stores() {
    let test = async |gpu: &Gpu| {
        let mut random = Random(22);
        use KvType::{F16, F32};
        for (n_head, n_head_kv, head_dim, kv) in
            [(1, 1, 64, F16), (4, 2, 64, F32), (20, 5, 128, F16), (3, 1, 96, F32), (2, 1, 8, F16)]
        {
            for pos in [0, 5, 700] {
                let shape = AttentionShape { n_head, n_head_kv, head_dim, kv };
                check_qkv(gpu, 384, shape, pos, &mut random).await;
            }
        }
        // Such rows have more lanes.
        let shape = AttentionShape { n_head: 1, n_head_kv: 1, head_dim: 64, kv: F16 };
        check_qkv(gpu, 4096, shape, 5, &mut random).await;
    };
    on_each_device(&test).await;
    test(without_packed_dot()).await;
}

pub(crate) async fn merge_norm_gemv_merges_splits() {
    let test = async |gpu: &Gpu| {
        let mut random = Random(23);
        for (i, (n_head, n_head_kv, head_dim)) in
            [(2, 1, 64), (20, 5, 128), (4, 2, 96), (16, 16, 8)].into_iter().enumerate()
        {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::F16 };
            let k = n_head * head_dim;
            let (weight, rows) = (hard_weight(k, &mut random), 77);
            let matrix = Matrix::new(k, rows, Product::Add, SCALES[1].0, &mut random);
            let w = matrix.upload(gpu, &cuts(rows, i + 1));
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
            // Up to four splits, each number has a pipeline of its own.
            for (pos, split_len) in [(0, 64), (64, 64), (130, 64), (255, 64), (699, 64), (699, 700)]
            {
                let case = Case::new(shape, super::attention::step(pos, 1, split_len), &mut random);
                let partials = case.partials(gpu, ATTENTION_DECODE);
                // The expected values come from the GPU's partials: attention has its own test.
                let merged = merged(gpu, &case, &partials).await;
                for has_norm in [true, false] {
                    // Pipelines are slow to compile: without a norm, one of each kind of head.
                    if !has_norm && i % 3 == 0 {
                        continue;
                    }
                    let y = gpu.upload("y", &vec![BEFORE; rows + 1]);
                    let norm = has_norm.then_some(&norm);
                    run(gpu, &case.step, |p| p.merge_norm_gemv(&w, &partials, norm, &y));
                    let v = Input::new(&merged, has_norm.then_some(&weight)).times(&matrix);
                    let mut expected: Vec<_> =
                        v.into_iter().map(|(v, off)| (BEFORE + v, off + 1e-7)).collect();
                    expected.push((BEFORE, 0.0));
                    let what = format!("{shape:?}, {has_norm}, {:?}", case.step);
                    check("merge_norm_gemv", &what, &read(gpu, &y).await, &expected);
                }
            }
        }
    };
    on_each_device(&test).await;
    test(without_packed_dot()).await;
}
