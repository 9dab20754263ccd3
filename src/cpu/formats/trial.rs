//! The test that a kernel passes before it is used: it computes hard inputs as plain Rust does.
//!
//! All scales are powers of two and all else are small integers. So every sum is exact, in whatever
//! order it is taken, and the results must be equal.

use super::super::machine::InstructionSet;
use super::super::random::Random;
use super::{Input, Job, Kernel, TILE};
use crate::blocks::block_type;
use crate::gguf::TensorType;

/// Values of a row. The odd number of blocks of 128 is hard for kernels that take two at a time.
const COLUMNS: usize = 2304;

const ROWS: usize = 6;

/// Whether the kernel has the results of plain Rust, for each number of tokens.
pub(super) fn is_right(kernel: &Kernel, set: InstructionSet) -> bool {
    set == InstructionSet::SCALAR
        || (1..=TILE).all(|tokens| {
            results(kernel, set, tokens) == results(kernel, InstructionSet::SCALAR, tokens)
        })
}

/// The bits of the products of hard rows with `tokens` hard inputs.
fn results(kernel: &Kernel, set: InstructionSet, tokens: usize) -> Vec<u32> {
    let mut random = Random(1);
    // A block of 64 more, where the type has such blocks.
    let columns = COLUMNS + if kernel.ty == TensorType::Q2_0 { 64 } else { 0 };
    let weights: Vec<u8> = (0..ROWS)
        .flat_map(|row| match kernel.upper {
            true => hard_uppers(columns, &mut random),
            false => hard_row(kernel.ty, columns, row, &mut random),
        })
        .collect();
    let inputs: Vec<Input> = (0..tokens)
        .map(|token| {
            let mut input = Input::default();
            input.prepare(kernel.order, set, &hard_input(columns, token, &mut random));
            input
        })
        .collect();
    let job =
        Job { weights: &weights, row_bytes: weights.len() / ROWS, factor: 1.0, inputs: &inputs };
    let mut out = vec![0.0; tokens * ROWS];
    kernel.product(set, &job, &mut out);
    out.into_iter().map(f32::to_bits).collect()
}

/// Rows of random codes.
pub(crate) fn random_rows(ty: TensorType, columns: usize, rows: usize) -> Vec<u8> {
    let mut random = Random(1);
    (0..rows).flat_map(|_| hard_row(ty, columns, 2, &mut random)).collect()
}

/// A row of blocks. Of the first two, all codes are the greatest or the least.
fn hard_row(ty: TensorType, columns: usize, row: usize, random: &mut Random) -> Vec<u8> {
    let code = |random: &mut Random| match row {
        0 => 0xff,
        1 => 0,
        _ => random.next() as u8,
    };
    // No code of two bits is 3.
    let no_3 = |byte: u8| byte & !((byte & byte >> 1) & 0x55);
    let Some(block) = block_type(ty) else {
        return match ty {
            TensorType::I2S => (0..columns / 4).map(|_| no_3(code(random))).collect(),
            _ => (0..columns)
                .flat_map(|_| {
                    let value = (random.next() % 64) as f32 - 32.0;
                    match ty {
                        TensorType::F16 => half::f16::from_f32(value).to_le_bytes().to_vec(),
                        TensorType::Bf16 => half::bf16::from_f32(value).to_le_bytes().to_vec(),
                        _ => value.to_le_bytes().to_vec(),
                    }
                })
                .collect(),
        };
    };
    let halves: &[usize] = match ty {
        TensorType::Q4K => &[0, 2],
        TensorType::Q6K => &[208],
        TensorType::Tq1_0 => &[52],
        TensorType::Tq2_0 => &[64],
        _ => &[0],
    };
    let blocks = (0..columns / block.elements).flat_map(|_| {
        let mut bytes: Vec<u8> = (0..block.bytes).map(|_| code(random)).collect();
        if block.bits == 2 && ty != TensorType::Tq1_0 {
            bytes.iter_mut().for_each(|byte| *byte = no_3(*byte));
        }
        for &at in halves {
            let scale = half::f16::from_f32([0.5, 1.0, -2.0][random.next() as usize % 3]);
            bytes[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
        bytes
    });
    blocks.collect()
}

/// Upper bytes of values from 1/2 to 2, of either sign.
fn hard_uppers(columns: usize, random: &mut Random) -> Vec<u8> {
    (0..columns).map(|_| 14 << 3 | random.next() as u8 & 0x8f).collect()
}

/// The values of a token. Every 32 have one whose magnitude is 127 times a power of two, so their
/// scale is that power. Of the first two tokens, all have.
fn hard_input(columns: usize, token: usize, random: &mut Random) -> Vec<f32> {
    let values = (0..columns).map(|i| {
        let scale = [0.5, 1.0, 2.0][i / 32 % 3];
        scale
            * match token {
                0 => 127.0,
                1 => -127.0,
                _ if i % 32 == 7 => 127.0,
                _ => (random.next() % 255) as f32 - 127.0,
            }
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::input::Order;
    use super::super::{UPPER, kernel_of, product_of_floats, types};
    use super::*;
    use crate::ternary::{self, Layout};

    #[test]
    fn every_kernel_of_every_instruction_set_is_right() {
        for ty in types() {
            for set in InstructionSet::available() {
                let kernel = kernel_of(ty).expect("a kernel");
                assert!(is_right(kernel, set), "{ty} with {}", set.name());
            }
        }
        for set in InstructionSet::available() {
            assert!(is_right(&UPPER, set), "upper bytes with {}", set.name());
        }
    }

    /// The values of a row, in float64.
    fn values(ty: TensorType, row: &[u8]) -> Vec<f64> {
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect();
        match ty {
            TensorType::I2S => {
                ternary::unpack(row, Layout::X86).into_iter().map(f64::from).collect()
            }
            TensorType::F16 => {
                let halves = row.as_chunks().0.iter();
                wide(halves.map(|b| half::f16::from_le_bytes(*b).to_f32()).collect())
            }
            TensorType::Bf16 => {
                let halves = row.as_chunks().0.iter();
                wide(halves.map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect())
            }
            TensorType::F32 => {
                wide(row.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
            }
            _ => wide(block_type(ty).expect("blocks").values(row).expect("no fault")),
        }
    }

    /// The inputs as the kernel rounds them, in float64.
    fn rounded(order: Order, x: &[f32]) -> Vec<f64> {
        let group = match order {
            Order::Floats => return x.iter().map(|&x| x.into()).collect(),
            Order::Rows => x.len(),
            _ => 32,
        };
        let round = |x: &[f32]| {
            let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            let largest = if order == Order::Rows { largest.max(1e-5) } else { largest };
            let per = if largest > 1e-30 { 127.0 / largest } else { 0.0 };
            let value = |x: &f32| f64::from((x * per).round_ties_even()) / 127.0;
            x.iter().map(|x| value(x) * f64::from(largest)).collect::<Vec<_>>()
        };
        x.chunks(group).flat_map(round).collect()
    }

    /// Values of any size, all zero, tiny, with a single one that is not zero, and ties.
    fn inputs(columns: usize, random: &mut Random) -> Vec<Vec<f32>> {
        let mut all = vec![vec![0.0; columns], vec![1e-38; columns], vec![0.0; columns]];
        all[2][columns - 1] = -3.0;
        all.push((0..columns).map(|i| [127.0, 0.5, 1.5, -2.5][i % 4]).collect());
        for power in [-20, 0, 20] {
            let value = |random: &mut Random| (random.next() as f32 / 8_388_608.0 - 1.0).powi(3);
            all.push((0..columns).map(|_| value(random) * 2.0f32.powi(power)).collect());
        }
        all
    }

    /// Compares products with those of float64. `columns` are the fewest that a row can have, and more.
    #[test]
    fn products_are_those_of_float64() {
        for ty in types() {
            let least = match (ty, block_type(ty)) {
                (TensorType::I2S, _) => 128,
                (_, Some(block)) => block.elements,
                _ => 32,
            };
            for columns in [least, 3 * least, 2304 / least * least] {
                let mut random = Random(columns as u64);
                let rows: Vec<Vec<u8>> =
                    (0..5).map(|row| hard_row(ty, columns, row, &mut random)).collect();
                let xs = inputs(columns, &mut random);
                for set in InstructionSet::available() {
                    check(ty, set, &rows, &xs);
                }
            }
        }
    }

    fn check(ty: TensorType, set: InstructionSet, rows: &[Vec<u8>], xs: &[Vec<f32>]) {
        let kernel = kernel_of(ty).expect("a kernel");
        let weights = rows.concat();
        let prepared = |order| -> Vec<Input> {
            let prepare = |x: &Vec<f32>| {
                let mut input = Input::default();
                input.prepare(order, set, x);
                input
            };
            xs.iter().map(prepare).collect()
        };
        let mut products = Vec::new();
        let inputs = prepared(kernel.order);
        let job = Job { weights: &weights, row_bytes: rows[0].len(), factor: 0.5, inputs: &inputs };
        let mut out = vec![f32::NAN; xs.len() * rows.len()];
        kernel.product(set, &job, &mut out);
        products.push((kernel.order, out.clone()));
        if let Some(block) = block_type(ty) {
            let inputs = prepared(Order::Floats);
            product_of_floats(set, block, &Job { inputs: &inputs, ..job }, &mut out);
            products.push((Order::Floats, out));
        }
        for (order, found) in products {
            for (t, x) in xs.iter().enumerate() {
                let x = rounded(order, x);
                for (r, row) in rows.iter().enumerate() {
                    let terms = values(ty, row).into_iter().zip(&x).map(|(w, x)| 0.5 * w * x);
                    let terms: Vec<f64> = terms.collect();
                    let expected: f64 = terms.iter().sum();
                    // The sums that are taken off again count too.
                    let size: f64 = x.iter().map(|x| x.abs()).sum::<f64>()
                        + terms.iter().map(|term| term.abs()).sum::<f64>();
                    let found = f64::from(found[t * rows.len() + r]);
                    let off = (found - expected).abs();
                    assert!(
                        off <= 2e-6 * size + 1e-40,
                        "{ty} with {}, {order:?}, input {t}, row {r}: {found}, not {expected}",
                        set.name()
                    );
                }
            }
        }
    }

    /// The bits of a token do not depend on those beside it.
    #[test]
    fn a_token_has_the_same_products_alone() {
        for ty in types() {
            let kernel = kernel_of(ty).expect("a kernel");
            let mut random = Random(9);
            let weights: Vec<u8> =
                (0..3).flat_map(|row| hard_row(ty, 768, row + 2, &mut random)).collect();
            for set in InstructionSet::available() {
                let inputs: Vec<Input> = inputs(768, &mut random)
                    .iter()
                    .map(|x| {
                        let mut input = Input::default();
                        input.prepare(kernel.order, set, x);
                        input
                    })
                    .collect();
                let of = |inputs: &[Input]| {
                    let row_bytes = weights.len() / 3;
                    let job = Job { weights: &weights, row_bytes, factor: 1.0, inputs };
                    let mut out = vec![0.0; 3 * inputs.len()];
                    kernel.product(set, &job, &mut out);
                    out
                };
                let alone: Vec<f32> = inputs.chunks(1).flat_map(of).collect();
                assert_eq!(of(&inputs), alone, "{ty} with {}", set.name());
            }
        }
    }
}
