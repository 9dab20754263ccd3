//! The kernels of adapters, compared with sums in f64.

use half::f16;
use tritloom::kernels::{Thin, Wide};

use crate::device::{device, read, run, step};
use crate::support::Random;

/// Random values, rounded to f16, and their bits two in a word.
fn halves(random: &mut Random, n: usize) -> (Vec<f64>, Vec<u32>) {
    let halves: Vec<f16> = (0..n).map(|_| f16::from_f32(random.float() - 0.5)).collect();
    let word = |pair: &[f16]| u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16;
    (halves.iter().map(|half| half.to_f64()).collect(), halves.chunks(2).map(word).collect())
}

fn dot(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum()
}

/// Checks the values of two tokens, and that those beyond the step are not written.
fn assert_near(found: &[f32], expected: &[f64]) {
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 1e-3, "{i}: {found} {expected}");
    }
}

#[test]
fn adapter_thin_multiplies_each_token_and_each_row_by_its_factor() {
    let gpu = device();
    let mut random = Random(5);
    for (k, rows) in [(32, 8), (288, 24), (2560, 48)] {
        let (a, words) = halves(&mut random, rows * k);
        let x: Vec<f32> = (0..3 * k).map(|_| random.float() - 0.5).collect();
        let factor: Vec<f32> = (0..rows).map(|_| 4.0 * random.float() - 2.0).collect();
        let (a_buffer, factors) = (gpu.upload("a", &words), gpu.upload("factor", &factor));
        let thin = Thin { k, a: a_buffer, factor: factors };
        let (x_buffer, u) = (gpu.upload("x", &x), gpu.upload("u", &vec![f32::NAN; 3 * rows]));
        run(gpu, &step(5, 2), |p| p.adapter_thin(&thin, &x_buffer, &u));
        let found = read(gpu, &u);
        let expected = x[..2 * k].chunks(k).flat_map(|x| {
            let row = |(a, &factor): (&[f64], &f32)| f64::from(factor) * dot(a, x);
            a.chunks(k).zip(&factor).map(row).collect::<Vec<f64>>()
        });
        assert_near(&found, &expected.collect::<Vec<f64>>());
        assert!(found[2 * rows..].iter().all(|value| value.is_nan()), "beyond the step");
    }
}

/// Each matrix has its own values of `u`.
#[test]
fn adapter_add_adds_to_each_token() {
    let gpu = device();
    let mut random = Random(6);
    for (matrices, rank) in [(vec![320], 8), (vec![64, 64], 24), (vec![256, 64, 96], 16)] {
        let (n, all): (usize, usize) = (matrices.len(), matrices.iter().sum());
        let (b, words) = halves(&mut random, all * rank);
        let u: Vec<f32> = (0..3 * n * rank).map(|_| random.float() - 0.5).collect();
        let before: Vec<f32> = (0..3 * all).map(|_| random.float()).collect();
        let wide = Wide { rows: matrices.clone(), rank, b: gpu.upload("b", &words) };
        let (u_buffer, y) = (gpu.upload("u", &u), gpu.upload("y", &before));
        run(gpu, &step(5, 2), |p| p.adapter_add(&wide, &u_buffer, &y));
        let found = read(gpu, &y);
        let of_row: Vec<usize> =
            matrices.iter().enumerate().flat_map(|(n, &rows)| vec![n; rows]).collect();
        let mut expected: Vec<f64> = before.iter().map(|&value| value.into()).collect();
        for token in 0..2 {
            for (row, matrix) in of_row.iter().enumerate() {
                let u = &u[(token * n + matrix) * rank..][..rank];
                expected[token * all + row] += dot(&b[row * rank..][..rank], u);
            }
        }
        assert_near(&found, &expected);
    }
}
