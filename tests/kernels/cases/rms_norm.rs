//! `rms_norm` norms the last token or every token. `rms_norm_quantize` norms and quantises every
//! token, `quantize_rows` only quantises.

use tritloom::gpu::Gpu;
use tritloom::kernels::{Norm, Quantized};
use tritloom::reference::ops;

use super::device::{assert_close, on_each_device, read, run, step};
use super::random::Random;

/// The error of f32 sums of up to 6912 squares in 256 lanes, of a square root and of two products.
pub(crate) const RELATIVE: f32 = 2e-6;

/// The kernel may round a value this near to a half the other way. The value is at most 127 and has
/// gone through about five roundings of 6e-8 each.
pub(crate) const NEAR_HALF: f64 = 1e-4;

/// Four int8 values in a word, in the order that `shaders/shared/quantize.wgsl` describes.
pub(crate) fn pack_quantized(q: &[i8]) -> Vec<u32> {
    let mut words = vec![0; q.len() / 4];
    for (i, &q) in q.iter().enumerate() {
        let (block, group, element) = (i / 128, i % 128 / 32, i % 32);
        let word = block * 32 + element / 4 * 4 + group;
        words[word] |= u32::from(q as u8) << (8 * (element % 4));
    }
    words
}

/// The inverse of [`pack_quantized`].
fn unpack_quantized(words: &[u32]) -> Vec<i8> {
    let value = |i: usize| {
        let (block, group, element) = (i / 128, i % 128 / 32, i % 32);
        (words[block * 32 + element / 4 * 4 + group] >> (8 * (element % 4))) as i8
    };
    (0..words.len() * 4).map(value).collect()
}

/// Rows of activations that are hard to norm: `[rows, n]`.
pub(crate) fn hard_rows(n: usize, random: &mut Random) -> Vec<f32> {
    let mut noise =
        |size: f32| -> Vec<f32> { (0..n).map(|_| size * (2.0 * random.float() - 1.0)).collect() };
    let mut outlier = noise(1e-3);
    outlier[n - 1] = -1e4;
    let mut outliers = noise(1.0);
    outliers[0] = 300.0;
    outliers[n / 2] = 299.0;
    let alternating = (0..n).map(|i| if i % 2 == 0 { 0.7 } else { -0.7 }).collect();
    let growing = (0..n).map(|i| 1e-6 * 1.005f32.powi(i as i32 % 4000)).collect();
    let rows = [
        noise(1.0),
        outlier,
        outliers,
        vec![0.0; n],
        // Values from squares that vanish beside eps to squares that nearly overflow.
        noise(1e-20),
        noise(1e-3),
        noise(1e6),
        noise(1e15),
        alternating,
        growing,
        noise(30.0),
    ];
    rows.concat()
}

pub(crate) fn hard_weight(n: usize, random: &mut Random) -> Vec<f32> {
    let weight = |i: usize, random: &mut Random| match i % 97 {
        13 => 0.0,
        29 => -2.5,
        31 => 40.0,
        37 => 1e-6,
        _ => 0.5 + random.float(),
    };
    (0..n).map(|i| weight(i, random)).collect()
}

pub(crate) async fn rms_norm_norms_the_last_token() {
    on_each_device(async |gpu| {
        let mut random = Random(3);
        // This kernel takes any size, such as a prime or one more than a workgroup.
        for n in [1, 128, 257, 384, 2560, 6907] {
            let (x, weight) = (hard_rows(n, &mut random), hard_weight(n, &mut random));
            let d_x = gpu.upload("x", &x);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
            for (token, row) in x.chunks(n).enumerate() {
                let expected = ops::rms_norm(row, &weight, 1e-5);
                let y = gpu.upload("y", &vec![f32::NAN; n]);
                run(gpu, &step(7, token + 1), |p| p.rms_norm(&d_x, &norm, &y));
                let what = format!("{n} values, row {token}");
                assert_close(("rms_norm", &what), &read(gpu, &y).await, &expected, RELATIVE, |i| {
                    expected[i].abs().max(1e-30)
                });
            }
        }
    })
    .await;
}

pub(crate) async fn rms_norm_of_all_norms_every_token() {
    on_each_device(async |gpu| {
        let mut random = Random(33);
        for n in [1, 257, 2560] {
            let (x, weight) = (hard_rows(n, &mut random), hard_weight(n, &mut random));
            let y = gpu.upload("y", &vec![f32::NAN; x.len()]);
            let d_x = gpu.upload("x", &x);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
            run(gpu, &step(7, x.len() / n), |p| p.rms_norm_of_all(&d_x, &norm, &y));
            let expected = ops::rms_norm(&x, &weight, 1e-5);
            let size = |i: usize| expected[i].abs().max(1e-30);
            assert_close(
                ("rms_norm", &format!("{n} values")),
                &read(gpu, &y).await,
                &expected,
                RELATIVE,
                size,
            );
        }
    })
    .await;
}

pub(crate) async fn rms_norm_quantize_handles_every_token() {
    on_each_device(async |gpu| {
        let mut random = Random(4);
        for n in [128, 384, 640, 2560, 6912] {
            let (x, weight) = (hard_rows(n, &mut random), hard_weight(n, &mut random));
            let n_tokens = x.len() / n;
            let y = quantized(gpu, n, n_tokens);
            let d_x = gpu.upload("x", &x);
            let norm = Norm { weight: gpu.upload("weight", &weight), eps: 1e-5 };
            run(gpu, &step(7, n_tokens), |p| p.rms_norm_quantize(&d_x, &norm, &y));
            let normed = ops::rms_norm(&x, &weight, 1e-5);
            check_quantized(gpu, ("rms_norm_quantize", &format!("{n} values")), &y, &normed, n)
                .await;
        }
    })
    .await;
}

pub(crate) async fn quantize_rows_quantizes_without_a_norm() {
    on_each_device(async |gpu| {
        let mut random = Random(5);
        for n in [128, 640, 6912] {
            let x = hard_rows(n, &mut random);
            let n_tokens = x.len() / n;
            let y = quantized(gpu, n, n_tokens);
            let d_x = gpu.upload("x", &x);
            run(gpu, &step(7, n_tokens), |p| p.quantize_rows(&d_x, n, &y));
            check_quantized(gpu, ("quantize_rows", &format!("{n} values")), &y, &x, n).await;
        }
    })
    .await;
}

/// Halves are rounded to the even neighbour. With x = ±1 the normed value is ± the weight. The
/// largest is 127, so the scale is 1 and values are rounded unscaled.
pub(crate) async fn halves_are_rounded_to_even() {
    on_each_device(async |gpu| {
        let weight: Vec<f32> =
            (0..128).map(|i| i as f32 - if i < 127 { 0.5 } else { 0.0 }).collect();
        let x: Vec<f32> = (0..128).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let y = quantized(gpu, 128, 1);
        let d_x = gpu.upload("x", &x);
        let norm = Norm { weight: gpu.upload("weight", &weight), eps: 0.0 };
        run(gpu, &step(0, 1), |p| p.rms_norm_quantize(&d_x, &norm, &y));
        assert_eq!(read(gpu, &y.scale).await[0][0], 1.0);
        let normed: Vec<f32> = x.iter().zip(&weight).map(|(x, w)| x * w).collect();
        assert_eq!(unpack_quantized(&read(gpu, &y.q).await), ops::quantize(&normed).0);
    })
    .await;
}

/// Buffers for `n_tokens` rows of `n` values.
pub(crate) fn quantized(gpu: &Gpu, n: usize, n_tokens: usize) -> Quantized {
    Quantized {
        q: gpu.upload("q", &vec![u32::MAX; n_tokens * n / 4]),
        scale: gpu.upload("q_scale", &vec![[f32::NAN; 2]; n_tokens]),
    }
}

/// Asserts that `y` is the quantisation of `normed` `[n_tokens, n]`. The integers equal those of
/// [`ops::quantize`], except where a value is near a half. The sum of the integers and the scale
/// are checked too.
pub(crate) async fn check_quantized(
    gpu: &Gpu,
    (kernel, what): (&str, &str),
    y: &Quantized,
    normed: &[f32],
    n: usize,
) {
    let (found, scales) = (unpack_quantized(&read(gpu, &y.q).await), read(gpu, &y.scale).await);
    let mut tipped = 0;
    for (token, row) in normed.chunks(n).enumerate() {
        let (expected, s) = ops::quantize(row);
        let found = &found[token * n..][..n];
        for i in 0..n {
            let value = f64::from(row[i]) * f64::from(s);
            let from_half = (value - value.floor() - 0.5).abs();
            let (f, e) = (i32::from(found[i]), i32::from(expected[i]));
            let may = from_half < NEAR_HALF && (f - e).abs() == 1;
            assert!(f == e || may, "{what}, token {token}, at {i}: {f}, not {value}");
            tipped += usize::from(f != e);
        }
        let [found_s, sum] = scales[token];
        assert_close(
            (kernel, &format!("{what}, token {token}: scale")),
            &[found_s],
            &[s],
            RELATIVE,
            |_| s,
        );
        let expected: i32 = found.iter().map(|&q| i32::from(q)).sum();
        assert_eq!(sum, expected as f32, "{what}, token {token}: sum of q");
    }
    // Of evenly spread values, one in five thousand is this near to a half.
    assert!(tipped * 1000 <= normed.len(), "{what}: {tipped} of {}", normed.len());
}
