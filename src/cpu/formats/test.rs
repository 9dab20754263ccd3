//! The test that a kernel passes before it is used: it computes hard inputs as plain Rust does.
//!
//! All scales are powers of two and all else are small integers. So every sum is exact, in whatever
//! order it is taken, and the results must be equal.

use super::super::machine::InstructionSet;
use super::{Input, Job, Kernel, TILE};
use crate::blocks::block_type;
use crate::gguf::TensorType;

/// Values of a row. The odd number of blocks of 128 is hard for kernels that take two at a time.
const COLUMNS: usize = 768;

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
    let weights: Vec<u8> =
        (0..ROWS).flat_map(|row| hard_row(kernel.ty, columns, row, &mut random)).collect();
    let inputs: Vec<Input> = (0..tokens)
        .map(|token| {
            let mut input = Input::default();
            input.prepare(kernel.order, set, &hard_input(columns, token, &mut random));
            input
        })
        .collect();
    let job = Job { weights: &weights, row_bytes: weights.len() / ROWS, factor: 1.0, inputs: &inputs };
    let mut out = vec![0.0; tokens * ROWS];
    kernel.product(set, &job, &mut out);
    out.into_iter().map(f32::to_bits).collect()
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

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::{kernel_of, types};
    use super::*;

    #[test]
    fn every_kernel_of_every_instruction_set_is_right() {
        for ty in types() {
            for set in InstructionSet::available() {
                let kernel = kernel_of(ty).expect("a kernel");
                assert!(is_right(kernel, set), "{ty} with {}", set.name());
            }
        }
    }
}
