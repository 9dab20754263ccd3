//! The best rows of an LM head whose values are split, for greedy tokens. They take the upper bytes of all rows, and
//! the lower ones of the rows that could have the greatest logit: the candidates. `kernels/rescore.rs`
//! proves that these are the rows of all bytes. The proof holds for any values that the upper bytes stand for, and for
//! any order of additions.
//!
//! Logits are multiplied by the model's scale, which may make two of them equal. A row that is ruled out stays
//! below: it is below by more than the spare part of its bound, which is some sixteen times such a rounding.

use super::formats::{Job, UPPER};
use super::input::Input;
use super::pool::{Pool, each};
use super::product::Matrix;
use super::split::Split;
use crate::compute::{MAX_NORM, MIN_NORM, SLACK};
use crate::sampling::Sampling;

/// Rows whose products one thread computes from all bytes at a time.
const ROWS: usize = 16;

impl Matrix {
    /// The row with the greatest product with each of `inputs`, of floats; of equal ones, the first. Products
    /// are multiplied by `scale` before that. `None` if finding it takes all products.
    pub(super) fn best_rows(
        &self,
        pool: &dyn Pool,
        inputs: &[Input],
        scale: f32,
    ) -> Option<Vec<u32>> {
        let candidates = self.candidates(pool, inputs)?;
        let mut products: Vec<_> = candidates.iter().map(|rows| vec![0.0; rows.len()]).collect();
        let mut jobs = Vec::new();
        for (token, (rows, products)) in candidates.iter().zip(&mut products).enumerate() {
            let input = std::slice::from_ref(&inputs[token]);
            let parts = rows.chunks(ROWS).zip(products.chunks_mut(ROWS));
            jobs.extend(parts.map(|(rows, products)| (input, rows, products)));
        }
        each(pool, &mut jobs, |_, (input, rows, products)| {
            for (&row, product) in rows.iter().zip(products.iter_mut()) {
                let row = row as usize;
                self.multiply_split(row..row + 1, input, std::slice::from_mut(product));
                *product *= scale;
            }
        });
        let best = |(rows, products): (&Vec<u32>, &Vec<f32>)| {
            Some(rows[Sampling::default().choose(products, 0)? as usize])
        };
        candidates.iter().zip(&products).map(best).collect()
    }

    /// The rows that could have the greatest product with each of `inputs`, in their order. `None` if sums could
    /// overflow, or the matrix is not split.
    fn candidates(&self, pool: &dyn Pool, inputs: &[Input]) -> Option<Vec<Vec<u32>>> {
        let Split { set, errors } = self.split.as_ref()?;
        let norms: Vec<f32> = inputs.iter().map(Input::norm).collect();
        if !norms.iter().all(|&norm| norm <= MAX_NORM) {
            return None;
        }
        let (upper, _) = self.halves();
        let (row_bytes, each_rows) = (self.row_bytes() / 2, self.part_rows());
        let mut approximations = vec![0.0; self.rows * inputs.len()];
        let mut parts: Vec<_> = upper
            .chunks(each_rows * row_bytes)
            .zip(approximations.chunks_mut(each_rows * inputs.len()))
            .collect();
        each(pool, &mut parts, |_, (weights, out)| {
            let job = Job { weights, row_bytes, factor: self.factor, inputs };
            UPPER.product(*set, &job, out);
        });
        let of_token = |token: usize, norm: f32| {
            let norm = (norm + MIN_NORM) * SLACK;
            let rows = || {
                let parts = approximations.chunks(each_rows * inputs.len());
                parts.zip(errors.chunks(each_rows)).flat_map(move |(part, errors)| {
                    let part = &part[token * errors.len()..];
                    part.iter().zip(errors).map(move |(value, error)| (value, error * norm))
                })
            };
            let lead = rows().fold(f32::NEG_INFINITY, |lead, (value, off)| lead.max(value - off));
            let could_lead = |(row, (value, off)): (u32, (&f32, f32))| {
                // Nor is a row ruled out by a comparison with what is no number.
                let is_ruled_out = value + off < lead;
                (!is_ruled_out).then_some(row)
            };
            (0..).zip(rows()).filter_map(could_lead).collect()
        };
        Some(norms.iter().enumerate().map(|(token, &norm)| of_token(token, norm)).collect())
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::formats::kernel_of;
    use super::super::machine::InstructionSet;
    use super::super::pool::Alone;
    use super::super::product::{Products, multiply};
    use super::super::random::Random;
    use super::*;
    use crate::gguf::TensorType;

    const COLUMNS: usize = 160;
    const ROWS: usize = 700;

    /// Values between -1 and 1.
    fn noise(random: &mut Random) -> f32 {
        random.next() as f32 / 8_388_608.0 - 1.0
    }

    fn matrix(set: InstructionSet, values: &[f32]) -> Matrix {
        let rows: Vec<u8> =
            values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
        let mut bytes = vec![0; rows.len()];
        let mut split = Split::new(&[set]);
        let (upper, lower) = bytes.split_at_mut(rows.len() / 2);
        split.add(&rows, COLUMNS, upper, lower);
        let kernel = kernel_of(TensorType::F16).expect("a kernel");
        let n = rows.len() / COLUMNS / 2;
        let split = Some(split);
        Matrix { kernel, set, rows: n, bytes, factor: 1.0, of_floats: false, split }
    }

    fn inputs(matrix: &Matrix, xs: &[Vec<f32>]) -> Vec<Input> {
        let prepare = |x: &Vec<f32>| {
            let mut input = Input::default();
            matrix.prepare(&mut input, x);
            input
        };
        xs.iter().map(prepare).collect()
    }

    /// The best rows by all products.
    fn by_all(matrix: &Matrix, inputs: &[Input], scale: f32) -> Vec<u32> {
        let mut products = Products::default();
        multiply(&Alone, [matrix], inputs, [&mut products]);
        let best = |token| {
            let mut logits = Vec::new();
            products.take(token, &mut logits);
            logits.iter_mut().for_each(|logit| *logit *= scale);
            Sampling::default().choose(&logits, 0).expect("a number")
        };
        (0..inputs.len()).map(best).collect()
    }

    /// Matrices that upper bytes approximate badly, or in which many rows are nearly the best.
    #[test]
    fn the_best_rows_are_those_of_all_bytes() {
        let mut random = Random(5);
        let mut filled = |value: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
            (0..ROWS * COLUMNS).map(|i| value(i, noise(&mut random))).collect()
        };
        let matrices = [
            ("noise", filled(&|_, noise| 0.05 * noise)),
            ("tiny", filled(&|_, noise| 1e-6 * noise)),
            ("large", filled(&|_, noise| 40.0 * noise)),
            ("some large", filled(&|i, noise| if i % 997 == 0 { 30.0 } else { noise })),
            ("zeros", filled(&|_, _| 0.0)),
            ("equal rows", filled(&|i, _| (i % COLUMNS * 7919 % 1009) as f32 / 1009.0 - 0.5)),
            ("pairs", filled(&|i, _| (i / 2 * 2 % 331) as f32 / 331.0 - 0.5)),
            (
                "rows that differ in a lower byte",
                filled(&|i, _| {
                    1.0 + if i % COLUMNS == 3 { (i / COLUMNS) as f32 / 1024.0 } else { 0.0 }
                }),
            ),
        ];
        let mut xs: Vec<Vec<f32>> = [1.0, 1e-20, 1e15]
            .iter()
            .map(|scale| (0..COLUMNS).map(|_| scale * noise(&mut random)).collect())
            .collect();
        xs.push(vec![0.0; COLUMNS]);
        xs.push(vec![-1.0; COLUMNS]);
        for (name, values) in &matrices {
            for set in InstructionSet::available() {
                let matrix = matrix(set, values);
                for scale in [1.0, 0.37] {
                    for n in [1, xs.len()] {
                        for xs in xs.chunks(n) {
                            let inputs = inputs(&matrix, xs);
                            let found = matrix.best_rows(&Alone, &inputs, scale);
                            let expected = by_all(&matrix, &inputs, scale);
                            assert_eq!(found, Some(expected), "{name} with {}", set.name());
                        }
                    }
                }
            }
        }
    }

    /// The greatest product of some row is ahead of the others', as that of a model's token is.
    #[test]
    fn few_rows_are_read_in_full() {
        let mut random = Random(7);
        let values: Vec<f32> = (0..ROWS * COLUMNS).map(|_| 0.05 * noise(&mut random)).collect();
        let matrix = matrix(InstructionSet::SCALAR, &values);
        let x: Vec<f32> =
            (0..COLUMNS).map(|i| values[123 * COLUMNS + i] + 0.03 * noise(&mut random)).collect();
        let candidates = matrix.candidates(&Alone, &inputs(&matrix, &[x])).expect("no overflow");
        assert!(candidates[0].contains(&123));
        assert!(candidates[0].len() < ROWS / 20, "{} rows", candidates[0].len());
    }

    #[test]
    fn inputs_that_could_overflow_take_all_products() {
        let matrix = matrix(InstructionSet::SCALAR, &[0.5; 2 * COLUMNS]);
        for value in [1e30, f32::NAN, f32::INFINITY] {
            let xs = [vec![0.0; COLUMNS], vec![value; COLUMNS]];
            assert!(matrix.best_rows(&Alone, &inputs(&matrix, &xs), 1.0).is_none(), "{value}");
        }
    }
}
