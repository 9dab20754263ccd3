//! The kernels of adapters, compared with sums in f64, and products with what adapters add.

use half::f16;
use tritloom::gpu::{Buffer, Gpu};
use tritloom::kernels::{Added, AttentionShape, Batch, KvType, Norm, Product, Thin, Wide};
use tritloom::model::Activation;
use tritloom::reference::ops;

use super::attention::{self, ATTENTION_DECODE, Case, merged};
use super::device::{
    assert_close, device, on_each_card, on_each_device, read, run, step, without_packed_dot,
};
use super::random::Random;
use super::rms_norm::{hard_rows, hard_weight, quantized};
use super::ternary_products::{BEFORE, Matrix, PRODUCTS, SCALES};

const EPS: f32 = 1e-5;

/// Random values, rounded to f16, and their bits two in a word.
fn halves(random: &mut Random, n: usize) -> (Vec<f64>, Vec<u32>) {
    let halves: Vec<f16> = (0..n).map(|_| f16::from_f32(random.float() - 0.5)).collect();
    let word = |pair: &[f16]| u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16;
    (halves.iter().map(|half| half.to_f64()).collect(), halves.chunks(2).map(word).collect())
}

/// A value and the size of the terms that it is the sum of.
type Sized = (f64, f64);

fn dot(a: &[f64], b: impl Iterator<Item = f64>) -> Sized {
    let terms = a.iter().zip(b).map(|(a, b)| a * b);
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// The kernels sum in f32.
#[track_caller]
fn check(kernel: &str, what: &str, found: &[f32], expected: &[Sized]) {
    let as_f32 = |&(value, size): &Sized| (value as f32, size as f32);
    let (values, sizes): (Vec<f32>, Vec<f32>) = expected.iter().map(as_f32).unzip();
    assert_close((kernel, what), found, &values, 1e-5, |i| sizes[i].max(1e-25));
}

async fn bits(gpu: &Gpu, y: &Buffer<f32>) -> Vec<u32> {
    read(gpu, y).await.into_iter().map(f32::to_bits).collect()
}

/// First matrices, on a GPU and in f64.
struct Thins {
    thin: Thin,
    a: Vec<f64>,
    factor: Vec<f32>,
}

impl Thins {
    fn new(gpu: &Gpu, (k, rows): (usize, usize), random: &mut Random) -> Self {
        let (a, words) = halves(random, rows * k);
        let factor: Vec<f32> = (0..rows).map(|_| 4.0 * random.float() - 2.0).collect();
        let (on_gpu, factors) = (gpu.upload("a", &words), gpu.upload("factor", &factor));
        Self { thin: Thin { k, a: on_gpu, factor: factors }, a, factor }
    }

    /// The products with each token of `x`. With a `weight`, tokens are normed.
    fn times(&self, x: &[f32], weight: Option<&[f32]>) -> Vec<Sized> {
        let k = self.thin.k;
        let of_token = |x: &[f32]| {
            let squares: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let scale = match weight {
                Some(_) => 1.0 / (squares / k as f64 + f64::from(EPS)).sqrt(),
                None => 1.0,
            };
            let input = |(i, &x): (usize, &f32)| {
                f64::from(x) * weight.map_or(1.0, |weight| f64::from(weight[i]))
            };
            let row = |(a, &factor): (&[f64], &f32)| {
                let (sum, size) = dot(a, x.iter().enumerate().map(input));
                let factor = scale * f64::from(factor);
                (factor * sum, factor.abs() * size)
            };
            self.a.chunks(k).zip(&self.factor).map(row).collect::<Vec<_>>()
        };
        x.chunks(k).flat_map(of_token).collect()
    }
}

/// A token has the same bits alone and among others.
pub(crate) async fn adapter_thin_norms_and_multiplies_hard_rows() {
    on_each_device(async |gpu| {
        let mut random = Random(5);
        for (k, rows) in [(32, 8), (1028, 24), (2560, 48)] {
            let thins = Thins::new(gpu, (k, rows), &mut random);
            let (x, weight) = (hard_rows(k, &mut random), hard_weight(k, &mut random));
            let n = x.len() / k;
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: EPS };
            let x_buffer = gpu.upload("x", &x);
            for has_norm in [true, false] {
                let [few, many] = [Batch::Few, Batch::Many].map(|batch| {
                    let u = gpu.upload("u", &vec![f32::NAN; (n + 1) * rows]);
                    let norm = has_norm.then_some(&norm);
                    run(gpu, &step(5, n), |p| {
                        p.adapter_thin(&thins.thin, &x_buffer, norm, &u, batch);
                    });
                    u
                });
                let what = format!("{k} x {rows}, {has_norm}");
                let found = read(gpu, &few).await;
                let expected = thins.times(&x, has_norm.then_some(&weight));
                check("adapter_thin", &what, &found[..n * rows], &expected);
                assert!(found[n * rows..].iter().all(|value| value.is_nan()), "beyond the step");
                assert_eq!(bits(gpu, &few).await, bits(gpu, &many).await, "{what}");
                let last = gpu.upload("u", &vec![f32::NAN; 2 * rows]);
                run(gpu, &step(5, n), |p| {
                    let norm = has_norm.then_some(&norm);
                    p.adapter_thin(&thins.thin, &x_buffer, norm, &last, Batch::Last);
                });
                let last = bits(gpu, &last).await;
                assert_eq!(last[..rows], bits(gpu, &few).await[(n - 1) * rows..n * rows], "{what}");
                assert_eq!(last[rows..], [f32::NAN.to_bits()].repeat(rows), "beyond the row");
            }
        }
    })
    .await;
}

pub(crate) async fn adapter_thin_merged_merges_splits() {
    on_each_device(async |gpu| {
        let mut random = Random(7);
        for (n_head, n_head_kv, head_dim) in [(4, 2, 96), (20, 5, 128)] {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv: KvType::F16 };
            let k = n_head * head_dim;
            let thins = Thins::new(gpu, (k, 16), &mut random);
            let weight = hard_weight(k, &mut random);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: EPS };
            // Up to four splits, each number has a pipeline of its own.
            for (pos, n_tokens, split_len) in [(0, 1, 64), (130, 3, 64), (699, 2, 64)] {
                let step = attention::step(pos, n_tokens, split_len);
                let case = Case::new(shape, step, &mut random);
                let partials = case.partials(gpu, ATTENTION_DECODE);
                // The expected values come from the GPU's partials: attention has its own test.
                let x = merged(gpu, &case, &partials).await;
                for has_norm in [true, false] {
                    let u = gpu.upload("u", &vec![f32::NAN; (n_tokens as usize + 1) * 16]);
                    run(gpu, &case.step, |p| {
                        let norm = has_norm.then_some(&norm);
                        p.adapter_thin_merged(&thins.thin, &partials, norm, &u);
                    });
                    let found = read(gpu, &u).await;
                    let (found, beyond) = found.split_at(n_tokens as usize * 16);
                    let expected = thins.times(&x, has_norm.then_some(&weight));
                    check(
                        "adapter_thin_merged",
                        &format!("{shape:?}, {has_norm}, {pos}"),
                        found,
                        &expected,
                    );
                    assert!(beyond.iter().all(|value| value.is_nan()), "beyond the step");
                }
            }
        }
    })
    .await;
}

/// Second matrices on a GPU, with random products of the first ones for `n` tokens.
fn wides(
    gpu: &Gpu,
    (rows, rank, n): (&[usize], usize, usize),
    random: &mut Random,
) -> (Wide, Vec<f64>, Vec<f32>) {
    let (b, words) = halves(random, rows.iter().sum::<usize>() * rank);
    let u = (0..n * rows.len() * rank).map(|_| 8.0 * random.float() - 4.0).collect();
    (Wide { rows: rows.into(), rank, b: gpu.upload("b", &words) }, b, u)
}

/// Each matrix has its own values of `u`.
pub(crate) async fn adapter_add_stores_adds_and_gates() {
    let gpu = device();
    let mut random = Random(6);
    let cases: [(&[usize], usize, Product); 5] = [
        (&[320], 8, Product::Store),
        (&[256, 64, 96], 16, Product::Store),
        (&[33, 31], 24, Product::Store),
        (&[320], 40, Product::Add),
        (&[64, 64], 24, Product::Gated(Activation::Silu)),
    ];
    for (parts, rank, product) in cases {
        let (n, all) = (11, parts.iter().sum::<usize>());
        let (wide, b, u) = wides(gpu, (parts, rank, n), &mut random);
        let v: Vec<f32> = (0..n * all).map(|_| 8.0 * random.float() - 4.0).collect();
        let (u_buffer, v_buffer) = (gpu.upload("u", &u), gpu.upload("v", &v));
        let rows = all / product.matrices();
        let [few, many] = [Batch::Few, Batch::Many].map(|batch| {
            let y = gpu.upload("y", &vec![BEFORE; (n + 1) * rows]);
            let added = Added { wide: &wide, u: &u_buffer };
            run(gpu, &step(5, n), |p| p.adapter_add(added, &v_buffer, &y, product, batch));
            y
        });
        let of_row: Vec<usize> =
            parts.iter().enumerate().flat_map(|(part, &rows)| vec![part; rows]).collect();
        let mut expected = Vec::new();
        for token in 0..n {
            let results = of_row.iter().enumerate().map(|(row, part)| {
                let u = &u[(token * parts.len() + part) * rank..][..rank];
                let (sum, size) = dot(&b[row * rank..][..rank], u.iter().map(|&u| f64::from(u)));
                let v = f64::from(v[token * all + row]);
                (v + sum, size + v.abs())
            });
            let results: Vec<Sized> = results.collect();
            expected.extend((0..rows).map(|row| {
                let (value, size) = results[row];
                match product {
                    Product::Store => (value, size),
                    Product::Add => (value + f64::from(BEFORE), size + 1.0),
                    Product::Gated(activation) => {
                        let (up, up_size) = results[rows + row];
                        let gated = ops::gated(activation, &[value as f32], &[up as f32])[0];
                        (gated.into(), (1.0 + size) * (1.0 + size) * up_size)
                    }
                }
            }));
        }
        let found = read(gpu, &few).await;
        check("adapter_add", &format!("{parts:?}, {product:?}"), &found[..n * rows], &expected);
        assert!(found[n * rows..].iter().all(|&value| value == BEFORE), "beyond the step");
        assert_eq!(bits(gpu, &few).await, bits(gpu, &many).await, "{parts:?}, {product:?}");
        let one = gpu.upload("y", &vec![BEFORE; 2 * rows]);
        let added = Added { wide: &wide, u: &u_buffer };
        run(gpu, &step(5, n), |p| p.adapter_add(added, &v_buffer, &one, product, Batch::Last));
        let one = bits(gpu, &one).await;
        assert_eq!(one[..rows], bits(gpu, &few).await[..rows], "{parts:?}, {product:?}");
        assert_eq!(one[rows..], [BEFORE.to_bits()].repeat(rows), "beyond the row");
    }
}

/// A product that adds what pairs say gives the bits of the product alone and `adapter_add`: a token must
/// give the same bits alone and among others. Those two are compared with the reference by themselves.
pub(crate) async fn products_with_adapters_give_the_bits_of_two_kernels() {
    let test = async |gpu: &Gpu| {
        let mut random = Random(8);
        for (i, k) in [384, 2560, 9216].into_iter().enumerate() {
            for product in PRODUCTS {
                let rows = 96;
                let parts: &[usize] = match product {
                    Product::Store => &[64, 16, 16],
                    Product::Add => &[96],
                    Product::Gated(_) => &[96, 96],
                };
                let (x, weight) = (hard_rows(k, &mut random), hard_weight(k, &mut random));
                let norm = Norm { weight: gpu.upload("weight", &weight), eps: EPS };
                let matrix = Matrix::new(k, rows, product, SCALES[1].0, &mut random);
                let w = matrix.upload(gpu, if i == 1 { &[32] } else { &[] });
                let both = if product.matrices() == 2 {
                    w.one_below_the_other()
                } else {
                    matrix.upload(gpu, &[])
                };
                let (wide, _, u) = wides(gpu, (parts, 16, 1), &mut random);
                let u = gpu.upload("u", &u);
                let added = Added { wide: &wide, u: &u };
                for x in [&x[..k], &x[2 * k..3 * k]] {
                    let x = gpu.upload("x", x);
                    let q = quantized(gpu, k, 1);
                    let apart = gpu.upload("apart", &vec![BEFORE; both.rows]);
                    let [one, two]: [Buffer<f32>; 2] =
                        [(); 2].map(|()| gpu.upload("y", &vec![BEFORE; rows + 1]));
                    run(gpu, &step(3, 1), |p| {
                        p.norm_gemv_adapted(&w, &x, Some(&norm), added, &one, product);
                        p.rms_norm_quantize(&x, &norm, &q);
                        p.gemv_i2s(&both, &q, &apart, Product::Store);
                        p.adapter_add(added, &apart, &two, product, Batch::Few);
                    });
                    let [one, two] = [bits(gpu, &one).await, bits(gpu, &two).await];
                    assert_eq!(one, two, "{k} columns, {product:?}");
                    assert!(one[..rows].iter().any(|&bits| bits != BEFORE.to_bits()));
                    assert_eq!(one[rows], BEFORE.to_bits());
                }
            }
        }
    };
    on_each_card(&test).await;
    test(without_packed_dot()).await;
}

pub(crate) async fn products_of_attention_with_adapters_give_the_bits_of_two_kernels() {
    on_each_card(async |gpu| {
        let mut random = Random(9);
        let shape = AttentionShape { n_head: 20, n_head_kv: 5, head_dim: 128, kv: KvType::F16 };
        let (k, rows) = (2560, 77);
        let weight = hard_weight(k, &mut random);
        let norm = Norm { weight: gpu.upload("weight", &weight), eps: EPS };
        let matrix = Matrix::new(k, rows, Product::Add, SCALES[1].0, &mut random);
        let w = matrix.upload(gpu, &[]);
        let (wide, _, u) = wides(gpu, (&[rows], 16, 1), &mut random);
        let u = gpu.upload("u", &u);
        let added = Added { wide: &wide, u: &u };
        for (pos, split_len) in [(64, 64), (130, 64), (699, 64), (699, 700)] {
            let case = Case::new(shape, attention::step(pos, 1, split_len), &mut random);
            let partials = case.partials(gpu, ATTENTION_DECODE);
            for norm in [Some(&norm), None] {
                let q = quantized(gpu, k, 1);
                let [one, two, apart]: [Buffer<f32>; 3] =
                    [(); 3].map(|()| gpu.upload("y", &vec![BEFORE; rows]));
                run(gpu, &case.step, |p| {
                    p.merge_norm_gemv_adapted(&w, &partials, norm, added, &one);
                    p.attention_merge(&partials, norm, &q);
                    p.gemv_i2s(&w, &q, &apart, Product::Store);
                    p.adapter_add(added, &apart, &two, Product::Add, Batch::Few);
                });
                assert_eq!(bits(gpu, &one).await, bits(gpu, &two).await, "{:?}", case.step);
            }
        }
    })
    .await;
}
