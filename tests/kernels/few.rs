//! What steps of few tokens have of their own: `gemm_head`, `best_of_each`, and the norm of each token.

use ternlight::kernels::{
    DenseType, FEW, best_of_each, gemm_head, gemv_head, gemv_head_split, rms_norm, stretches,
};
use ternlight::reference::ops;

use crate::device::{assert_close, on_each_device, on_each_device_and_as_cards, read, run, step};
use crate::embedding::{hard_values, upload};
use crate::norm::{RELATIVE, hard_rows, hard_weight};
use crate::support::Random;

#[test]
fn gemm_head_is_gemv_head_to_the_bit() {
    on_each_device_and_as_cards(|gpu| {
        let mut random = Random(31);
        for (k, rows) in [(128, 1), (384, 63), (2560, 300)] {
            let w = hard_values(rows * k, &mut random);
            let x: Vec<f32> = (0..FEW * k).map(|_| 2.0 * random.float() - 1.0).collect();
            let d_x = gpu.upload("x", &x);
            for ty in [DenseType::F16, DenseType::F16Split, DenseType::F32] {
                let cut = rows > 3 && ty == DenseType::F16Split;
                let cuts: &[usize] = if cut { &[20, 21, rows - 1] } else { &[] };
                let embd = upload(gpu, &w, k, ty, cuts);
                let logits = gpu.upload("logits", &vec![f32::NAN; FEW * rows]);
                run(gpu, &step(0, FEW), |r, p, _| gemm_head(r, p, &embd, &d_x, &logits));
                let one_by_one: Vec<f32> = x
                    .chunks(k)
                    .flat_map(|x| {
                        let (x, logits) = (gpu.upload("x", x), gpu.buffer("logits", rows));
                        run(gpu, &step(0, 1), |r, p, _| match ty {
                            DenseType::F16Split => gemv_head_split(r, p, &embd, &x, &logits),
                            _ => gemv_head(r, p, &embd, &x, &logits),
                        });
                        read(gpu, &logits)
                    })
                    .collect();
                assert_eq!(read(gpu, &logits), one_by_one, "{k} x {rows}, {ty:?}");
            }
        }
    });
}

#[test]
fn best_of_each_takes_the_lowest_id_among_equals() {
    on_each_device(|gpu| {
        for n_vocab in [1, 255, 1025, 4096] {
            let last = n_vocab - 1;
            let row = |at: &[(usize, f32)], rest: f32| -> Vec<f32> {
                let value = |i: usize| at.iter().find(|(j, _)| *j == i).map_or(rest, |(_, v)| *v);
                (0..n_vocab).map(value).collect()
            };
            let rows = [
                row(&[(last, 1.0)], -3.0),
                row(&[(last, 2.0), (last / 2, 2.0)], -3.0),
                row(&[], f32::NEG_INFINITY),
                row(&[(last, -5.0)], f32::NAN),
                row(&[], f32::NAN),
            ];
            let size = stretches(n_vocab);
            let logits = gpu.upload("logits", &rows.concat());
            let best = gpu.upload("best", &vec![[1, 77u32]; (rows.len() + 1) * size]);
            run(gpu, &step(3, rows.len()), |r, p, _| best_of_each(r, p, n_vocab, &logits, &best));
            let of_stretch = |(at, logits): (usize, &[f32])| {
                let numbers = logits.iter().enumerate().filter(|(_, v)| !v.is_nan());
                let best = numbers.reduce(|a, b| if b.1 > a.1 { b } else { a });
                best.map_or([0, u32::MAX], |(i, v)| [v.to_bits(), (at * 1024 + i) as u32])
            };
            let expected: Vec<[u32; 2]> = rows
                .iter()
                .flat_map(|row| row.chunks(1024).enumerate().map(of_stretch))
                .chain(vec![[1, 77]; size])
                .collect();
            assert_eq!(read(gpu, &best), expected, "{n_vocab}");
        }
    });
}

#[test]
fn rms_norm_of_each_token() {
    on_each_device(|gpu| {
        let mut random = Random(33);
        for n in [1, 257, 2560] {
            let (x, weight) = (hard_rows(n, &mut random), hard_weight(n, &mut random));
            let y = gpu.upload("y", &vec![f32::NAN; x.len()]);
            let (d_x, d_weight) = (gpu.upload("x", &x), gpu.upload("weight", &weight));
            run(gpu, &step(7, x.len() / n), |r, p, step| {
                rms_norm(r, p, step, &d_x, &d_weight, &y, true, 1e-5);
            });
            let expected = ops::rms_norm(&x, &weight, 1e-5);
            let size = |i: usize| expected[i].abs().max(1e-30);
            assert_close(&format!("{n} values"), &read(gpu, &y), &expected, RELATIVE, size);
        }
    });
}
