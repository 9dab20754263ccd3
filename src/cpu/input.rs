//! The inputs of products, as kernels read them.

use super::machine::{InstructionSet, Run, Simd};

/// The form of a product's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// int8 with a scale for the row, in their order.
    Rows,
    /// int8 with a scale for every 32, in their order.
    Groups,
    /// The same in units of 128: every fourth value from the first one on, then from the second, and
    /// so on. Codes of four neighbouring values are in one byte.
    Fours,
    /// The same in units of 128: values 0 and 8 and so on, then 4 and 12 and so on, then 1 and 9. Codes
    /// of eight neighbouring values are in one byte.
    Eights,
    /// f32.
    Floats,
}

/// The input of a product for one token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// Vectors of 32 int8, in the order and the form that the kernel takes.
    q: Vec<u64>,
    /// A scale for every 32 values. In [`Order::Fours`] and [`Order::Eights`]: for each lane.
    scales: Vec<f32>,
    /// Minus the sum of every 16 values, because codes are larger than their weights. In
    /// [`Order::Fours`] and [`Order::Eights`]: for each lane.
    negated: Vec<f32>,
    floats: Vec<f32>,
    row_scale: f32,
    row_sum: i32,
}

/// An [`Input`] of vectors `Q`.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a, Q> {
    pub(crate) q: &'a [Q],
    pub(crate) scales: &'a [f32],
    pub(crate) negated: &'a [f32],
    pub(crate) floats: &'a [f32],
    /// `q = round(x * row_scale)`.
    pub(crate) row_scale: f32,
    /// The sum of all int8.
    pub(crate) row_sum: i32,
}

impl Input {
    /// Makes the input of the values `x`, a multiple of 32, for a kernel of these instructions.
    pub(crate) fn prepare(&mut self, order: Order, set: InstructionSet, x: &[f32]) {
        set.run(Prepare { input: self, order, x });
    }

    /// The Euclidean norm of an input of floats.
    pub(crate) fn norm(&self) -> f32 {
        self.floats.iter().map(|x| x * x).sum::<f32>().sqrt()
    }

    #[inline(always)]
    pub(crate) fn token<S: Simd>(&self) -> Token<'_, S::Stored> {
        Token {
            q: bytemuck::cast_slice(&self.q),
            scales: &self.scales,
            negated: &self.negated,
            floats: &self.floats,
            row_scale: self.row_scale,
            row_sum: self.row_sum,
        }
    }
}

struct Prepare<'a> {
    input: &'a mut Input,
    order: Order,
    x: &'a [f32],
}

impl Run for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { input, order, x } = self;
        input.scales.clear();
        input.negated.clear();
        let units = match order {
            Order::Floats => {
                input.floats.clear();
                return input.floats.extend_from_slice(x);
            }
            Order::Rows | Order::Groups => x.len() / 32,
            Order::Fours | Order::Eights => x.len().div_ceil(128) * 4,
        };
        let words = units * size_of::<S::Stored>() / size_of::<u64>();
        input.q.resize(words, 0);
        let q: &mut [S::Stored] = bytemuck::cast_slice_mut(&mut input.q);
        match order {
            Order::Rows => {
                let largest = largest(x).max(1e-5);
                let per = (127.0 / f64::from(largest)) as f32;
                input.row_scale = per;
                input.row_sum = 0;
                for (q, x) in q.iter_mut().zip(x.as_chunks::<32>().0) {
                    let values = rounded(x, per, -128.0);
                    input.row_sum += sum(&values);
                    *q = S::stored(&values);
                }
            }
            Order::Groups => {
                for (q, x) in q.iter_mut().zip(x.as_chunks::<32>().0) {
                    let (values, scale) = quantized(x);
                    input.scales.push(scale);
                    input.negated.extend(sums(&values).map(|sum| -scale * sum as f32));
                    *q = S::stored(&values);
                }
            }
            Order::Fours | Order::Eights => {
                for (q, x) in q.as_chunks_mut::<4>().0.iter_mut().zip(x.chunks(128)) {
                    // Groups that are missing at the end are zeros.
                    let (mut unit, mut scales, mut of_16) = ([0; 128], [0.0; 4], [0.0; 8]);
                    for (group, x) in x.as_chunks::<32>().0.iter().enumerate() {
                        let (values, scale) = quantized(x);
                        unit[32 * group..][..32].copy_from_slice(&values);
                        scales[group] = scale;
                        for (i, sum) in sums(&values).into_iter().enumerate() {
                            of_16[2 * group + i] = -scale * sum as f32;
                        }
                    }
                    for (n, q) in q.iter_mut().enumerate() {
                        let mut values = [0; 32];
                        for (i, value) in values.iter_mut().enumerate() {
                            *value = unit[match order {
                                Order::Fours => 4 * i + n,
                                _ => 8 * (i % 16) + i / 16 * 4 + n,
                            }];
                        }
                        *q = S::stored(&values);
                    }
                    for lane in 0..8 {
                        let (scale, sum) = match order {
                            Order::Fours => (scales[lane / 2], of_16[lane]),
                            // A bit stands for two: from -1 to +1.
                            _ if lane < 4 => {
                                (2.0 * scales[lane], of_16[2 * lane] + of_16[2 * lane + 1])
                            }
                            _ => (2.0 * scales[lane - 4], 0.0),
                        };
                        input.scales.push(scale);
                        input.negated.push(sum);
                    }
                }
            }
            Order::Floats => {}
        }
    }
}

/// The largest magnitude. It is NaN if a value is.
#[inline(always)]
pub(crate) fn largest(x: &[f32]) -> f32 {
    // Magnitudes sort as their bits do, and NaN comes last.
    f32::from_bits(x.iter().fold(0, |largest, x| largest.max(x.abs().to_bits())))
}

/// If this is added to a float of less than 2^22, the lowest bits of the sum are the nearest integer.
/// A half goes to the even one.
const ROUNDER: f32 = 12_582_912.0;

#[inline(always)]
pub(crate) fn round(x: f32, least: f32) -> i8 {
    ((x.clamp(least, 127.0) + ROUNDER).to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32)
        as i8
}

/// The factor that makes int8 of values up to `largest`. If it would be infinite, the values count as
/// zeros.
#[inline(always)]
pub(crate) fn per_scale(largest: f32) -> f32 {
    if largest > 1e-30 { 127.0 / largest } else { 0.0 }
}

#[inline(always)]
fn rounded(x: &[f32; 32], per: f32, least: f32) -> [i8; 32] {
    let mut values = [0; 32];
    for i in 0..32 {
        values[i] = round(x[i] * per, least);
    }
    values
}

/// 32 values as int8, and their scale.
#[inline(always)]
fn quantized(x: &[f32; 32]) -> ([i8; 32], f32) {
    let largest = largest(x);
    (rounded(x, per_scale(largest), -127.0), largest / 127.0)
}

#[inline(always)]
fn sum(values: &[i8]) -> i32 {
    values.iter().map(|&value| i32::from(value)).sum()
}

#[inline(always)]
fn sums(values: &[i8; 32]) -> [i32; 2] {
    [sum(&values[..16]), sum(&values[16..])]
}
