//! `best_of_each` makes the greedy choices of a draft pass.

use ternlight::kernels::{NO_TOKEN, VOCAB_BLOCK, vocab_blocks};

use crate::device::{on_each_device, read, run, step};

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
            let size = vocab_blocks(n_vocab);
            let logits = gpu.upload("logits", &rows.concat());
            let best = gpu.upload("best", &vec![[1, 77u32]; (rows.len() + 1) * size]);
            run(gpu, &step(3, rows.len()), |p| p.best_of_each(n_vocab, &logits, &best));
            let of_block = |(at, logits): (usize, &[f32])| {
                let numbers = logits.iter().enumerate().filter(|(_, v)| !v.is_nan());
                let best = numbers.reduce(|a, b| if b.1 > a.1 { b } else { a });
                best.map_or([0, NO_TOKEN], |(i, v)| [v.to_bits(), (at * VOCAB_BLOCK + i) as u32])
            };
            let expected: Vec<[u32; 2]> = rows
                .iter()
                .flat_map(|row| row.chunks(VOCAB_BLOCK).enumerate().map(of_block))
                .chain(vec![[1, 77]; size])
                .collect();
            assert_eq!(read(gpu, &best), expected, "{n_vocab}");
        }
    });
}
