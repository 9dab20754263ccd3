//! `best_of_each` makes the greedy choices of a draft pass.

use tritloom::gpu::{Gpu, Step};
use tritloom::kernels::{Adjustments, BestOfBlock, NO_TOKEN, Penalties, VOCAB_BLOCK, vocab_blocks};
use tritloom::sampling::{Mask, Sampling};

use super::device::{on_each_device, read, run, step};
use super::random::Random;

/// A draft pass after a text.
#[derive(Default)]
struct Pass {
    sampling: Sampling,
    biases: Vec<f32>,
    /// One for each of its own tokens, if any.
    masks: Option<Vec<Mask>>,
    prompt: Vec<u32>,
    output: Vec<u32>,
    /// Tokens of a pass before it, and its own.
    uncertain: Vec<u32>,
    ids: Vec<u32>,
    /// The logits after each of its own.
    rows: Vec<Vec<f32>>,
}

impl Pass {
    /// The result of the kernel. `before` fills its buffer.
    async fn best(&self, gpu: &Gpu, before: &[BestOfBlock]) -> Vec<BestOfBlock> {
        let n_vocab = self.biases.len();
        let penalties = gpu
            .upload("penalties", &[Penalties::new(&self.sampling, 0).masked(self.masks.is_some())]);
        let counts = Penalties::counts(n_vocab, &self.prompt, &self.output);
        let counts = gpu.upload("counts", &counts);
        let first = 5;
        let tokens = [&vec![7; first][..], &self.uncertain, &self.ids].concat();
        let tokens = gpu.upload("tokens", &tokens);
        let biases = gpu.upload("biases", &self.biases);
        let masks = match &self.masks {
            Some(masks) => Mask::words_of_all(masks, n_vocab).unwrap(),
            // They would forbid every token, if they were read.
            None => vec![0; self.rows.len() * Mask::n_words(n_vocab)],
        };
        let masks = gpu.upload("masks", &masks);
        let logits = gpu.upload("logits", &self.rows.concat());
        let best = gpu.upload("best", before);
        let by =
            Adjustments { penalties: &penalties, counts: &counts, biases: &biases, masks: &masks };
        let step = Step {
            token: (first + self.uncertain.len()) as u32,
            uncertain: self.uncertain.len() as u32,
            ..step(40, self.rows.len())
        };
        run(gpu, &step, |p| p.best_of_each(by, &tokens, &logits, &best));
        read(gpu, &best).await
    }

    /// The expected result: the blocks of a row.
    fn expected(&self, row: usize) -> Vec<BestOfBlock> {
        let output = [&self.output[..], &self.uncertain, &self.ids[..=row]].concat();
        let logits = &self.rows[row];
        let mut values: Vec<f32> = logits.iter().zip(&self.biases).map(|(a, b)| a + b).collect();
        self.sampling.penalize(&mut values, &self.prompt, &output);
        if let Some(masks) = &self.masks {
            masks[row].apply_to(&mut values);
        }
        let of_block = |(at, values): (usize, &[f32])| {
            let numbers = values.iter().enumerate().filter(|(_, v)| !v.is_nan());
            let best = numbers.reduce(|a, b| if b.1 > a.1 { b } else { a });
            best.map_or(NONE, |(i, &value)| {
                let id = at * VOCAB_BLOCK + i;
                BestOfBlock { value, id: id as u32, logit: logits[id] }
            })
        };
        values.chunks(VOCAB_BLOCK).enumerate().map(of_block).collect()
    }
}

const NONE: BestOfBlock = BestOfBlock { value: 0.0, id: NO_TOKEN, logit: 0.0 };

pub(crate) async fn best_of_each_takes_the_lowest_id_among_equals() {
    on_each_device(async |gpu| {
        for n_vocab in [1, 255, 1025, 4096] {
            let last = n_vocab - 1;
            let row = |at: &[(usize, f32)], rest: f32| -> Vec<f32> {
                let value = |i: usize| at.iter().find(|(j, _)| *j == i).map_or(rest, |(_, v)| *v);
                (0..n_vocab).map(value).collect()
            };
            let rows = vec![
                row(&[(last, 1.0)], -3.0),
                row(&[(last, 2.0), (last / 2, 2.0)], -3.0),
                row(&[], f32::NEG_INFINITY),
                row(&[(last, -5.0)], f32::NAN),
                row(&[], f32::NAN),
            ];
            let pass = Pass {
                biases: vec![0.0; n_vocab],
                ids: vec![0; rows.len()],
                rows,
                ..Pass::default()
            };
            let size = vocab_blocks(n_vocab);
            let other = BestOfBlock { value: 1.0, id: 77, logit: 2.0 };
            let expected: Vec<_> = (0..pass.rows.len())
                .flat_map(|row| pass.expected(row))
                .chain(vec![other; size])
                .collect();
            let found = pass.best(gpu, &vec![other; expected.len()]).await;
            assert_eq!(found, expected, "{n_vocab}");
        }
    })
    .await;
}

/// Tokens of the pass, and of the one before it, count for the rows that come after them alone. All
/// numbers are exact.
pub(crate) async fn best_of_each_takes_biases_penalties_and_masks_into_account() {
    on_each_device(async |gpu| {
        let mut random = Random(9);
        let n_vocab = 1030;
        let mut eighth = || (64.0 * random.float()).floor() / 8.0 - 4.0;
        let settings = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.0, 0.5, 0.25], [0.5, -0.5, 2.0]];
        for [repeat_penalty, presence_penalty, frequency_penalty] in settings {
            let sampling = Sampling {
                repeat_penalty,
                presence_penalty,
                frequency_penalty,
                ..Sampling::default()
            };
            let mut biases = vec![0.0; n_vocab];
            for (id, bias) in [(7, -1.5), (1029, 3.0), (5, 100.0)] {
                biases[id] = bias;
            }
            let mut rows: Vec<Vec<f32>> =
                (0..6).map(|_| (0..n_vocab).map(|_| eighth()).collect()).collect();
            for row in &mut rows {
                // The tokens of the text are near the best, so that their penalties decide.
                for id in [3, 4, 6, 9, 1025, 1026] {
                    row[id] += 4.0;
                }
                row[5] = f32::NAN;
            }
            // Some forbid the best tokens, or all but two.
            let masks: Vec<Mask> = (0..6)
                .map(|row| match row % 3 {
                    0 => Mask::of(n_vocab, (0..n_vocab as u32).filter(|id| id % 7 != 4)),
                    1 => Mask::of(n_vocab, [row as u32 + 40, 1029]),
                    _ => Mask::of(n_vocab, 0..n_vocab as u32),
                })
                .collect();
            let pass = Pass {
                sampling,
                biases,
                masks: (repeat_penalty != 2.0).then_some(masks),
                prompt: vec![3, 9, 600],
                output: vec![4, 4, 9, 1025],
                uncertain: vec![1026, 6],
                ids: vec![6, 1026, 3, 3, 4, 1029],
                rows,
            };
            let expected: Vec<_> = (0..6).flat_map(|row| pass.expected(row)).collect();
            assert_eq!(pass.best(gpu, &vec![NONE; expected.len()]).await, expected, "{sampling:?}");
        }
    })
    .await;
}
