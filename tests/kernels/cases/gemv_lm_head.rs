//! `gemv_lm_head` computes the LM head from an embedding of f16 or f32. `greedy_lm_head.rs` tests
//! the LM head of an embedding that is split into bytes.

use half::f16;
use tritloom::kernels::DenseType;
use tritloom::reference::ops;

use super::device::{assert_close, on_each_device_and_as_cards, read, run, step};
use super::embed::{hard_values, upload};
use super::random::Random;

pub(crate) async fn gemv_lm_head_computes_every_shard() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(6);
        for (k, rows) in [(128, 1), (384, 63), (6912, 65), (2560, 1000)] {
            let w: Vec<f32> = hard_values(rows * k, &mut random);
            let mut x: Vec<f32> = (0..k).map(|_| 2.0 * random.float() - 1.0).collect();
            x[k / 2] = 700.0;
            let cuts: &[usize] = if rows > 3 { &[20, 21, rows - 1] } else { &[] };
            let expected = ops::matvec_f32(&w, k, &x);
            let halves: Vec<u16> = w.iter().map(|&w| f16::from_f32(w).to_bits()).collect();
            assert_eq!(ops::matvec_f16(&halves, k, &x), expected);
            // Lanes sum in f32, so the error is proportional to the sum of the absolute terms.
            let size: Vec<f32> = w
                .chunks(k)
                .map(|row| row.iter().zip(&x).map(|(w, x)| (w * x).abs()).sum())
                .collect();
            for ty in [DenseType::F16, DenseType::F32] {
                let embd = upload(gpu, &w, k, ty, cuts);
                let d_x = gpu.upload("x", &x);
                let logits = gpu.upload("logits", &vec![f32::NAN; rows]);
                run(gpu, &step(0, 1), |p| p.gemv_lm_head(&embd, &d_x, &logits));
                let what = format!("{k} x {rows}, {ty:?}");
                assert_close(
                    ("gemv_lm_head", &what),
                    &read(gpu, &logits).await,
                    &expected,
                    1e-6,
                    |i| size[i],
                );
            }
        }
    })
    .await;
}
