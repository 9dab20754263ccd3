//! `gemm_lm_head` computes the LM head of a draft pass.

use tritloom::kernels::{DenseType, FEW};

use super::device::{on_each_device_and_as_cards, read, run, step};
use super::embed::{hard_values, upload};
use super::random::Random;

pub(crate) async fn gemm_lm_head_equals_gemv_lm_head_to_the_bit() {
    on_each_device_and_as_cards(async |gpu| {
        let mut random = Random(31);
        for (k, rows, ty, cuts) in [
            (128, 1, DenseType::F16, &[][..]),
            (384, 63, DenseType::F16Split, &[20, 21]),
            (384, 63, DenseType::F32, &[]),
            (2560, 300, DenseType::F16Split, &[]),
            (2560, 300, DenseType::F16, &[]),
        ] {
            let w = hard_values(rows * k, &mut random);
            let x: Vec<f32> = (0..FEW * k).map(|_| 2.0 * random.float() - 1.0).collect();
            let d_x = gpu.upload("x", &x);
            let embd = upload(gpu, &w, k, ty, cuts);
            let logits = gpu.upload("logits", &vec![f32::NAN; FEW * rows]);
            run(gpu, &step(0, FEW), |p| p.gemm_lm_head(&embd, &d_x, &logits));
            let mut one_by_one = Vec::new();
            for x in x.chunks(k) {
                let (x, logits) = (gpu.upload("x", x), gpu.buffer("logits", rows));
                run(gpu, &step(0, 1), |p| match ty {
                    DenseType::F16Split => p.gemv_lm_head_split(&embd, &x, &logits),
                    _ => p.gemv_lm_head(&embd, &x, &logits),
                });
                one_by_one.extend(read(gpu, &logits).await);
            }
            assert_eq!(read(gpu, &logits).await, one_by_one, "{k} x {rows}, {ty:?}");
        }
    })
    .await;
}
