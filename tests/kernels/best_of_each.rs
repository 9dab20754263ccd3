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
            let biases = gpu.buffer("biases", n_vocab);
            run(gpu, &step(3, rows.len()), |p| p.best_of_each(&logits, &biases, &best));
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

/// The best by the sum of logit and bias is told with its own logit.
#[test]
fn best_of_each_adds_the_biases() {
    on_each_device(|gpu| {
        let n_vocab = 1030;
        let of = |at: &[(usize, f32)], rest: f32| {
            let mut values = vec![rest; n_vocab];
            at.iter().for_each(|&(i, value)| values[i] = value);
            values
        };
        let biases = gpu.upload("biases", &of(&[(7, -1.5), (1029, 3.0), (5, 100.0)], 0.0));
        let rows = [of(&[(7, 2.0), (9, 1.0), (1028, 2.5)], 0.0), of(&[(5, f32::NAN)], -1.0)];
        let logits = gpu.upload("logits", &rows.concat());
        let best = gpu.buffer("best", 4);
        run(gpu, &step(0, 2), |p| p.best_of_each(&logits, &biases, &best));
        let expected = [(0.0, 5), (0.0, 1029), (-1.0, 0), (-1.0, 1029)];
        let expected = expected.map(|(logit, id): (f32, u32)| [logit.to_bits(), id]);
        assert_eq!(read(gpu, &best), expected);
    });
}
