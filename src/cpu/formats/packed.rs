//! Weights of four bits and more, with a scale for every 32 or 16.

use super::super::machine::{Simd, f16, unroll};
use super::ternary::chunk;
use super::{Format, Order, Token, totals};
use crate::gguf::TensorType;

/// Blocks of 32 in 16 bytes, after a scale. Byte `j` has values `j` and `16 + j`.
pub(super) struct Q4_0;

/// Blocks of 256: two factors, 12 bytes of scales and offsets, then four times 64 values in 32 bytes.
pub(super) struct Q4K;

/// Blocks of 256: 128 bytes of lower bits, 64 bytes of upper ones, 16 scales and their factor.
pub(super) struct Q6K;

/// Blocks of 32 in 32 bytes, after a scale.
pub(super) struct Q8_0;

/// The sum of the activations of group `n`.
#[inline(always)]
fn sum_of<Q>(x: &Token<'_, Q>, n: usize) -> f32 {
    x.sums[2 * n] + x.sums[2 * n + 1]
}

/// The totals without what the zero points or offsets add.
#[inline(always)]
fn less<S: Simd, const N: usize>(s: S, sums: [S::Floats; N], taken: [f32; N]) -> [f32; N] {
    let mut totals = totals(s, sums);
    unroll!(i in N => {
        totals[i] -= taken[i];
    });
    totals
}

impl Format for Q4_0 {
    const TYPE: TensorType = TensorType::Q4_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (mut sums, mut taken) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in row.as_chunks::<18>().0.iter().enumerate() {
            let codes = s.nibbles(chunk(block, 2));
            let scale = f16([block[0], block[1]]);
            unroll!(i in N => {
                let products = s.dot(s.no_products(), codes, s.input(&x[i].q[n]));
                sums[i] = s.add_scaled(sums[i], products, scale * x[i].scales[n]);
                taken[i] += 8.0 * scale * sum_of(&x[i], n);
            });
        }
        less(s, sums, taken)
    }
}

impl Format for Q4K {
    const TYPE: TensorType = TensorType::Q4K;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (mut sums, mut taken) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in row.as_chunks::<144>().0.iter().enumerate() {
            let factors = [f16([block[0], block[1]]), f16([block[2], block[3]])];
            // The lower four groups have six bits of their bytes; the upper four have the other two
            // bits, and four of the last bytes.
            let b: &[u8; 12] = chunk(block, 4);
            for (m, v) in block[16..].as_chunks::<32>().0.iter().enumerate() {
                let v = s.bytes(v);
                let halves = [s.field::<0, 15>(v), s.field::<4, 15>(v)];
                unroll!(half in 2 => {
                    let g = 2 * m + half;
                    let of_group = if g < 4 {
                        [b[g] & 63, b[4 + g] & 63]
                    } else {
                        [
                            b[4 + g] & 15 | b[g - 4] >> 6 << 4,
                            b[4 + g] >> 4 | b[g] >> 6 << 4,
                        ]
                    };
                    let scale = factors[0] * f32::from(of_group[0]);
                    let offset = factors[1] * f32::from(of_group[1]);
                    let at = 8 * n + g;
                    unroll!(i in N => {
                        let q = s.input(&x[i].q[at]);
                        let products = s.dot(s.no_products(), halves[half], q);
                        sums[i] = s.add_scaled(sums[i], products, scale * x[i].scales[at]);
                        taken[i] += offset * sum_of(&x[i], at);
                    });
                });
            }
        }
        less(s, sums, taken)
    }
}

impl Format for Q6K {
    const TYPE: TensorType = TensorType::Q6K;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (mut sums, mut taken) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in row.as_chunks::<210>().0.iter().enumerate() {
            let factor = f16([block[208], block[209]]);
            unroll!(half in 2 => {
                let lower = [
                    s.bytes(chunk(block, 64 * half)),
                    s.bytes(chunk(block, 64 * half + 32)),
                ];
                let upper = s.bytes(chunk(block, 128 + 32 * half));
                let codes = [
                    s.with_upper(s.field::<0, 15>(lower[0]), s.field::<0, 3>(upper)),
                    s.with_upper(s.field::<0, 15>(lower[1]), s.field::<2, 3>(upper)),
                    s.with_upper(s.field::<4, 15>(lower[0]), s.field::<4, 3>(upper)),
                    s.with_upper(s.field::<4, 15>(lower[1]), s.field::<6, 3>(upper)),
                ];
                let scales: &[u8; 8] = chunk(block, 192 + 8 * half);
                unroll!(f in 4 => {
                    let at = 8 * n + 4 * half + f;
                    let two = [scales[2 * f], scales[2 * f + 1]].map(|b| f32::from(b as i8) * factor);
                    unroll!(i in N => {
                        let q = s.input(&x[i].q[at]);
                        let products = s.products(s.dot(s.no_products(), codes[f], q));
                        let scales = s.halves(two.map(|scale| scale * x[i].scales[at]));
                        sums[i] = s.mul_add(products, scales, sums[i]);
                        taken[i] +=
                            32.0 * (two[0] * x[i].sums[2 * at] + two[1] * x[i].sums[2 * at + 1]);
                    });
                });
            });
        }
        less(s, sums, taken)
    }
}

impl Format for Q8_0 {
    const TYPE: TensorType = TensorType::Q8_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let mut sums = [s.zeros(); N];
        for (n, block) in row.as_chunks::<34>().0.iter().enumerate() {
            let weights = s.bytes(chunk(block, 2));
            let scale = f16([block[0], block[1]]);
            unroll!(i in N => {
                let q = s.input(&x[i].q[n]);
                sums[i] = s.add_signed(sums[i], weights, q, scale * x[i].scales[n]);
            });
        }
        totals(s, sums)
    }
}
