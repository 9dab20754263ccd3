//! `take_logits` copies a row of the logits of a batch.

use tritloom::gpu::Step;

use super::device::{device, read, run, step};

pub(crate) async fn take_logits_copies_the_row_of_the_step() {
    let gpu = device();
    for n_vocab in [1, 255, 257, 4000] {
        let all: Vec<f32> = (0..3 * n_vocab).map(|i| i as f32).collect();
        let logits = gpu.upload("logits", &vec![f32::NAN; n_vocab]);
        let rows = gpu.upload("all", &all);
        for row in 0..3 {
            let step = Step { row, ..step(7, 1) };
            run(gpu, &step, |p| p.take_logits(&rows, &logits));
            assert_eq!(read(gpu, &logits).await, all[row as usize * n_vocab..][..n_vocab]);
        }
    }
}
