//! The inputs of products, as kernels read them.

use std::array::from_fn;

use bytemuck::{Pod, Zeroable};

use super::machine::{InstructionSet, Run, Simd};

/// The form of a product's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// int8 with a scale for the row, in their order.
    Rows,
    /// int8 with a scale for every 32, in their order.
    Groups,
    /// The same in units of 256: a lane has values of one group. Codes of four neighbouring values are in one byte.
    Fours,
    /// The same, where codes of eight neighbouring values are in one byte.
    Eights,
    /// The same in units of 256, where codes of values of four groups are in one byte. Two lanes have values of one
    /// group, in the first half of the vectors or in the second.
    Planes,
    /// The same for other groups, in the order of [`TRITS`].
    Trits,
    /// f32.
    Floats,
}

/// The groups of the lanes in [`Order::Fours`], as [`Simd::even_and_odd`] gives them.
const FOURS: [usize; 8] = [0, 1, 4, 5, 2, 3, 6, 7];

/// The groups of the lanes in [`Order::Planes`].
const PLANES: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// The groups of the lanes in [`Order::Trits`]: where [`Simd::block_of_trits`] puts their digits.
const TRITS: [usize; 8] = [0, 2, 1, 3, 5, 6, 4, 7];

/// The input of a product for one token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// Vectors of 32 int8, in the order and the form that the kernel takes.
    q: Vec<Line>,
    /// A scale for every 32 values. In units of 256: a scale for each lane of the vectors, or for each lane of both
    /// halves of the vectors if these have different groups. Then minus the sum of every 32 values, because codes are
    /// larger than their weights.
    scales: Vec<f32>,
    /// Minus the sum of every 16 values in [`Order::Groups`].
    negated: Vec<f32>,
    floats: Vec<f32>,
    row_scale: f32,
    row_sum: i32,
}

/// A line of a CPU's cache. A vector that is in two of them takes twice as long to read.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

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
            _ => x.len().div_ceil(256) * 8,
        };
        let lines = (units * size_of::<S::Stored>()).div_ceil(size_of::<Line>());
        input.q.resize(lines, Line::zeroed());
        let q: &mut [S::Stored] = bytemuck::cast_slice_mut(&mut input.q);
        let (scales, negated) = (&mut input.scales, &mut input.negated);
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
                    scales.push(scale);
                    negated.extend(sums(&values).map(|sum| -scale * sum as f32));
                    *q = S::stored(&values);
                }
            }
            Order::Fours | Order::Eights | Order::Planes | Order::Trits => {
                for (q, x) in q.as_chunks_mut::<8>().0.iter_mut().zip(x.chunks(256)) {
                    let unit = Unit::new(x);
                    match order {
                        Order::Fours => {
                            unit.lanes::<S>(q, |n, i| {
                                (FOURS[i / 4], 16 * (n / 4) + i % 4 * 4 + n % 4)
                            });
                            scales.extend(FOURS.map(|group| unit.scales[group]));
                            scales.extend(FOURS.map(|group| unit.negated[group]));
                        }
                        Order::Eights => {
                            unit.lanes::<S>(q, |n, i| (i / 4, i % 4 * 8 + n));
                            // A bit stands for two: from -1 to +1.
                            scales.extend(unit.scales.map(|scale| 2.0 * scale));
                            scales.extend(unit.negated);
                        }
                        Order::Planes => unit.planes::<S>(q, scales, &PLANES),
                        _ => unit.planes::<S>(q, scales, &TRITS),
                    }
                }
            }
            Order::Floats => {}
        }
    }
}

/// 256 values as int8, in groups of 32.
struct Unit {
    groups: [[i8; 32]; 8],
    scales: [f32; 8],
    negated: [f32; 8],
}

impl Unit {
    /// Groups that are missing at the end are zeros.
    #[inline(always)]
    fn new(x: &[f32]) -> Self {
        let mut unit = Self { groups: [[0; 32]; 8], scales: [0.0; 8], negated: [0.0; 8] };
        for (group, x) in x.as_chunks::<32>().0.iter().enumerate() {
            let (values, scale) = quantized(x);
            unit.groups[group] = values;
            unit.scales[group] = scale;
            unit.negated[group] = -scale * sum(&values) as f32;
        }
        unit
    }

    /// Makes vectors whose lanes have a group each. `value(n, i)` is the group and the value in it that byte `i` of
    /// vector `n` gets.
    #[inline(always)]
    fn lanes<S: Simd>(
        &self,
        q: &mut [S::Stored; 8],
        value: impl Fn(usize, usize) -> (usize, usize),
    ) {
        for (n, q) in q.iter_mut().enumerate() {
            *q = S::stored(&from_fn(|i| {
                let (group, value) = value(n, i);
                self.groups[group][value]
            }));
        }
    }

    /// Makes vectors of which four have eight values of each of four groups, as [`Simd::planes`] has their codes,
    /// and the scales of their lanes.
    #[inline(always)]
    fn planes<S: Simd>(&self, q: &mut [S::Stored; 8], scales: &mut Vec<f32>, groups: &[usize; 8]) {
        for (n, q) in q.iter_mut().enumerate() {
            let groups = &groups[n / 4 * 4..][..4];
            *q = S::stored(&from_fn(|i| self.groups[groups[i / 8]][n % 4 * 8 + i % 8]));
        }
        for (i, &group) in groups.iter().enumerate() {
            scales.extend([self.scales[group] * S::PLACES[i % 4]; 2]);
        }
        // All lanes get the scale of the same block, so these may be in any of them.
        scales.extend(self.negated);
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
