//! The products that norm their own input: `norm_gemv`, `norm_gemv_rope_kv`, `merge_norm_gemv`.

use ternlight::gpu::Gpu;
use ternlight::kernels::{
    AttentionShape, MAX_NORMED_COLUMNS, Product, attention_decode, merge_norm_gemv, norm_gemv,
    norm_gemv_rope_kv,
};
use ternlight::reference::ops;

use crate::attention::{Case, STEPS, merged};
use crate::device::{on_each_device, read, run, step, with_float_products};
use crate::matrix::{BEFORE, Matrix, SCALES, cuts};
use crate::norm::{NEAR_HALF, RELATIVE, hard_rows, hard_weight};
use crate::rope::{self, pair, turns, values};
use crate::support::Random;

/// One token's input as the kernels are to see it.
struct Input {
    q: Vec<i8>,
    s: f32,
    /// Values so near to a half that they may be rounded the other way.
    near: f32,
}

impl Input {
    fn new(x: &[f32], weight: &[f32]) -> Self {
        let h = ops::rms_norm(x, weight, 1e-5);
        let (q, s) = ops::quantize(&h);
        let from_half = |h: &f32| {
            let value = f64::from(*h) * f64::from(s);
            (value - value.floor() - 0.5).abs()
        };
        Self { q, s, near: h.iter().filter(|h| from_half(h) < NEAR_HALF).count() as f32 }
    }

    /// Products with rows of `matrix`, each with what it may be off by.
    fn times(&self, matrix: &Matrix) -> Vec<(f32, f32)> {
        let sums = ops::matvec_ternary(&matrix.codes, matrix.k, &self.q);
        let value = |(sum, scale): (i32, &f32)| {
            let v = sum as f32 / self.s * scale;
            (v, self.near / self.s * scale + RELATIVE * v.abs())
        };
        sums.into_iter().zip(&matrix.scale).map(value).collect()
    }
}

/// relu(gate)² · up, and how far it is to the corners of what gate and up may be.
fn glu(gate: (f32, f32), up: (f32, f32)) -> (f32, f32) {
    let of = |gate: f32, up: f32| gate.max(0.0).powi(2) * up;
    let v = of(gate.0, up.0);
    let off = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
        .map(|(a, b)| (of(gate.0 + a * gate.1, up.0 + b * up.1) - v).abs());
    (v, off.into_iter().fold(RELATIVE * v.abs(), f32::max))
}

#[track_caller]
fn check(what: &str, found: &[f32], expected: &[(f32, f32)]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, (e, off))) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= *off, "{what}, at {i}: {f}, not {e} within {off}");
    }
}

/// `k` and rows: the least, around a workgroup's rows, the sizes of the 2B model, the longest row.
const SHAPES: [(usize, usize); 6] =
    [(128, 1), (384, 63), (2560, 65), (6912, 33), (640, 200), (MAX_NORMED_COLUMNS, 31)];

#[test]
fn norm_gemv_of_hard_rows() {
    let test = |gpu: &Gpu| {
        let mut random = Random(21);
        for (i, (k, rows)) in SHAPES.into_iter().enumerate() {
            let (xs, weight) = (hard_rows(k, &mut random), hard_weight(k, &mut random));
            let d_weight = gpu.upload("weight", &weight);
            for product in [Product::Store, Product::Add, Product::Relu2Glu] {
                let matrix = Matrix::new(k, rows, product, SCALES[1].0, &mut random);
                let cuts = cuts(rows, i + product as usize);
                let w = matrix.upload(gpu, &cuts);
                for (token, x) in xs.chunks(k).enumerate() {
                    let d_x = gpu.upload("x", x);
                    // One more than there are rows, to see that nothing is written past the end.
                    let y = gpu.upload("y", &vec![BEFORE; rows + 1]);
                    run(gpu, &step(3, 1), |r, p, _| {
                        norm_gemv(r, p, &w, &d_x, &d_weight, &y, product, 1e-5);
                    });
                    let v = Input::new(x, &weight).times(&matrix);
                    let mut expected: Vec<_> = match product {
                        Product::Store => v,
                        Product::Add => {
                            v.into_iter().map(|(v, off)| (BEFORE + v, off + 1e-7)).collect()
                        }
                        Product::Relu2Glu => (0..rows).map(|i| glu(v[i], v[rows + i])).collect(),
                    };
                    expected.push((BEFORE, 0.0));
                    let what = format!("{k} x {rows}, row {token}, {product:?}, cut at {cuts:?}");
                    check(&what, &read(gpu, &y), &expected);
                }
            }
        }
    };
    on_each_device(test);
    test(with_float_products());
}

fn check_qkv(gpu: &Gpu, shape: AttentionShape, pos: usize, random: &mut Random) {
    const K: usize = 384;
    let AttentionShape { n_head, n_head_kv, head_dim, kv_f16 } = shape;
    let (n_q, n_kv) = (n_head * head_dim, n_head_kv * head_dim);
    let (x, weight) = (hard_rows(K, random)[..K].to_vec(), hard_weight(K, random));
    let matrix = Matrix::new(K, n_q + 2 * n_kv, Product::Store, SCALES[0].0, random);
    // Shards end where heads do.
    let w = matrix.upload(gpu, &[head_dim, n_q + n_kv]);
    let n_ctx = pos + 2;
    let cache = || gpu.upload("cache", &vec![rope::BEFORE; shape.cache_bytes(n_ctx) / 4]);
    let (k_cache, v_cache) = (cache(), cache());
    let q = gpu.upload("q", &vec![f32::NAN; n_q]);
    let (d_x, d_weight) = (gpu.upload("x", &x), gpu.upload("weight", &weight));
    let d_turns = gpu.upload("turns", &turns(n_ctx, head_dim));
    run(gpu, &step(pos, 1), |r, p, step| {
        norm_gemv_rope_kv(
            r, p, step, &shape, &w, &d_x, &d_weight, &d_turns, &q, &k_cache, &v_cache, 1e-5,
        );
    });

    let (mut v, off): (Vec<f32>, Vec<f32>) =
        Input::new(&x, &weight).times(&matrix).into_iter().unzip();
    ops::rope_neox(&mut v[..n_q + n_kv], head_dim, pos, rope::BASE);
    let f16 = if kv_f16 { 1.0 / 1024.0 } else { 0.0 };
    let expected = |rows: std::ops::Range<usize>, scale: f32, relative: f32| -> Vec<(f32, f32)> {
        let off = |i: usize| {
            let turned = pair(&off, head_dim, i) + (4e-7 + relative) * pair(&v, head_dim, i);
            scale * turned.max(relative * 6.2e-5) // f16's least normal number
        };
        rows.map(|i| (v[i] * scale, off(i))).collect()
    };
    let what = format!("{shape:?} at {pos}");
    let scale = 1.0 / (head_dim as f32).sqrt();
    check(&format!("q, {what}"), &read(gpu, &q), &expected(0..n_q, scale, 0.0));
    let caches = [(k_cache, n_q..n_q + n_kv), (v_cache, n_q + n_kv..n_q + 2 * n_kv)];
    for (cache, rows) in caches {
        let words = read(gpu, &cache);
        let per_position = words.len() / n_ctx;
        let written = pos * per_position..(pos + 1) * per_position;
        let found = values(&words[written.clone()], kv_f16);
        check(&format!("rows {rows:?}, {what}"), &found, &expected(rows, 1.0, f16));
        let untouched = (0..words.len()).filter(|i| !written.contains(i));
        assert!({ untouched }.all(|i| words[i] == rope::BEFORE), "{what}: wrote elsewhere");
    }
}

#[test]
fn norm_gemv_rope_kv_turns_and_stores() {
    on_each_device(|gpu| {
        let mut random = Random(22);
        for (n_head, n_head_kv, head_dim) in
            [(1, 1, 64), (4, 2, 64), (20, 5, 128), (3, 1, 96), (2, 1, 8)]
        {
            for (kv_f16, pos) in [(true, 0), (false, 0), (true, 700), (false, 5)] {
                let shape = AttentionShape { n_head, n_head_kv, head_dim, kv_f16 };
                check_qkv(gpu, shape, pos, &mut random);
            }
        }
    });
}

#[test]
fn merge_norm_gemv_puts_parts_together() {
    on_each_device(|gpu| {
        let mut random = Random(23);
        for (n_head, n_head_kv, head_dim) in [(2, 1, 64), (20, 5, 128), (4, 2, 96), (16, 16, 8)] {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv_f16: true };
            let k = n_head * head_dim;
            let (weight, rows) = (hard_weight(k, &mut random), 77);
            let matrix = Matrix::new(k, rows, Product::Add, SCALES[1].0, &mut random);
            let (w, d_weight) = (matrix.upload(gpu, &cuts(rows, 1)), gpu.upload("weight", &weight));
            for (pos, n_tokens, split_len) in STEPS {
                if n_tokens > 1 {
                    continue;
                }
                let case = Case::new(shape, crate::attention::step(pos, 1, split_len), &mut random);
                let parts = case.parts(gpu, attention_decode);
                let y = gpu.upload("y", &vec![BEFORE; rows + 1]);
                run(gpu, &case.step, |r, p, step| {
                    merge_norm_gemv(r, p, step, &shape, &w, &parts, &d_weight, &y, 1e-5);
                });
                // From the parts as they are: attention has its own test.
                let v = Input::new(&merged(gpu, &case, &parts), &weight).times(&matrix);
                let mut expected: Vec<_> =
                    v.into_iter().map(|(v, off)| (BEFORE + v, off + 1e-7)).collect();
                expected.push((BEFORE, 0.0));
                check(&format!("{shape:?}, {:?}", case.step), &read(gpu, &y), &expected);
            }
        }
    });
}
