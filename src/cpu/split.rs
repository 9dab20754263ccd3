//! F16 values that are split into upper and lower bytes, so that greedy tokens read hardly more than the upper
//! ones: see `candidates.rs`.
//!
//! The bytes differ from a GPU's in two ways. The exponent's top bit is the lowest bit of the lower byte, so a
//! split value without it is as fast to convert as an f16. And in a row with values of 2 and more, no exponent
//! is moved: the error of its upper bytes counts as infinite.

use super::formats::UPPER;
use super::machine::{InstructionSet, Run, Simd, approximate, f16};
use crate::compute::SLACK;

/// How a matrix is split.
pub(super) struct Split {
    /// The instruction set of the kernel for upper bytes.
    pub(super) set: InstructionSet,
    /// For each row: the most that the upper bytes put its product off, as a share of the input's norm.
    pub(super) errors: Vec<f32>,
}

/// The bits of an f16 from the exponent's top bit on, which is set from 2 on.
const TOP: u16 = 0x4000;

/// The upper byte and the lower one of an f16.
#[inline(always)]
fn split([low, high]: [u8; 2]) -> [u8; 2] {
    let bits = u16::from_le_bytes([low, high]);
    (bits & 0x8000 | (bits & (TOP - 1)) << 1 | (bits & TOP) >> 14).to_be_bytes()
}

/// The f16 of an upper byte and a lower one.
#[inline(always)]
fn join(upper: u8, lower: u8) -> [u8; 2] {
    let bits = u16::from_be_bytes([upper, lower]);
    (bits & 0x8000 | bits >> 1 & (TOP - 1) | (bits & 1) << 14).to_le_bytes()
}

impl Split {
    /// Splits nothing yet. Upper bytes are to be multiplied with the first of `sets` that is right.
    pub(super) fn new(sets: &[InstructionSet]) -> Self {
        Self { set: UPPER.choose(sets), errors: Vec::new() }
    }

    /// Splits the next rows of f16. Each has as many values as `upper` and `lower` have bytes for it.
    pub(super) fn add(&mut self, rows: &[u8], columns: usize, upper: &mut [u8], lower: &mut [u8]) {
        let bytes = upper.chunks_exact_mut(columns).zip(lower.chunks_exact_mut(columns));
        for (row, (upper, lower)) in rows.chunks_exact(2 * columns).zip(bytes) {
            self.errors.push(self.set.run(SplitRow { row, upper, lower }));
        }
    }
}

/// Splits a row. Gives the error of its upper bytes.
struct SplitRow<'a> {
    row: &'a [u8],
    upper: &'a mut [u8],
    lower: &'a mut [u8],
}

impl Run for SplitRow<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f32 {
        // Sums for each of 32 values, because the compiler may not add them in another order. A row is a multiple
        // of 32.
        let (mut of_values, mut of_errors, mut largest) = ([0.0; 32], [0.0; 32], 0);
        let bytes = self.upper.as_chunks_mut().0.iter_mut().zip(self.lower.as_chunks_mut().0);
        for (row, (upper, lower)) in self.row.as_chunks::<64>().0.iter().zip(bytes) {
            let (upper, lower): (&mut [u8; 32], &mut [u8; 32]) = (upper, lower);
            let (values, _) = row.as_chunks::<2>();
            for i in 0..32 {
                [upper[i], lower[i]] = split(values[i]);
                largest = largest.max(u16::from_le_bytes(values[i]) & 0x7fff);
                let value = f16(values[i]);
                let error = value - approximate(upper[i]);
                of_values[i] += value * value;
                of_errors[i] += error * error;
            }
        }
        if largest >= TOP {
            return f32::INFINITY;
        }
        let [value, error] = [of_values, of_errors].map(|sums| sums.iter().sum::<f32>().sqrt());
        let g = (self.upper.len() + 16) as f32 / (1 << 24) as f32;
        (error + g * (2.0 * value + 2.0 * error)) * SLACK
    }
}

/// Joins the bytes of a row.
pub(super) struct JoinRow<'a> {
    pub(super) upper: &'a [u8],
    pub(super) lower: &'a [u8],
    pub(super) row: &'a mut [u8],
}

impl Run for JoinRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let values = self.row.as_chunks_mut::<2>().0.iter_mut();
        for ((value, &upper), &lower) in values.zip(self.upper).zip(self.lower) {
            *value = join(upper, lower);
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_number_is_joined_as_it_was() {
        for bits in 0..=u16::MAX {
            let value = bits.to_le_bytes();
            let [upper, lower] = split(value);
            assert_eq!(join(upper, lower), value, "{bits:#06x}");
        }
    }

    #[test]
    fn upper_bytes_are_within_a_sixteenth() {
        for bits in 0x400..TOP {
            for value in [f16::from_bits(bits), -f16::from_bits(bits)] {
                let [upper, _] = split(value.to_le_bytes());
                let value = value.to_f32();
                assert!((approximate(upper) - value).abs() <= value.abs() / 16.0, "{value}");
            }
        }
    }
}
