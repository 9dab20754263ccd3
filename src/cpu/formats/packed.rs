//! Weights of four bits and more, with a scale for every 32 or 16.

use super::super::machine::{Simd, f16, unroll};
use super::ternary::chunk;
use super::{Format, Order, Token, Units, totals, units};
use crate::gguf::TensorType;

/// Blocks of 32 in 16 bytes, after a scale. Byte `j` has values `j` and `16 + j`.
pub(super) struct Q4_0;

/// Blocks of 256: two factors, 12 bytes of scales and offsets, then four times 64 values in 32 bytes.
pub(super) struct Q4K;

/// Blocks of 256: 128 bytes of lower bits, 64 bytes of upper ones, 16 scales and their factor.
pub(super) struct Q6K;

/// Blocks of 32 in 32 bytes, after a scale.
pub(super) struct Q8_0;

/// The inputs of groups of 32.
type Of32<'a, Q> = Units<'a, Q, 1, 1, 2>;

/// The inputs of blocks of 256.
type Of256<'a, Q> = Units<'a, Q, 8, 8, 16>;

/// The totals, and what zero points or offsets add.
#[inline(always)]
fn with<S: Simd, const N: usize>(s: S, sums: [S::Floats; N], added: [f32; N]) -> [f32; N] {
    let mut totals = totals(s, sums);
    unroll!(i in N => {
        totals[i] += added[i];
    });
    totals
}

impl Format for Q4_0 {
    const TYPE: TensorType = TensorType::Q4_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<18>();
        let x: [Of32<'_, S::Stored>; N] = units(x, blocks.len());
        let (mut sums, mut added) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in blocks.iter().enumerate() {
            let codes = s.nibbles(chunk(block, 2));
            let scale = f16([block[0], block[1]]);
            unroll!(i in N => {
                let ([q], [of_input], [a, b]) = (&x[i].q[n], x[i].scales[n], x[i].negated[n]);
                let products = s.dot(s.no_products(), codes, s.input(q));
                sums[i] = s.add_scaled(sums[i], products, scale * of_input);
                added[i] += 8.0 * scale * (a + b);
            });
        }
        with(s, sums, added)
    }
}

impl Format for Q4K {
    const TYPE: TensorType = TensorType::Q4K;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<144>();
        let x: [Of256<'_, S::Stored>; N] = units(x, blocks.len());
        let (mut sums, mut added) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in blocks.iter().enumerate() {
            let factors = [f16([block[0], block[1]]), f16([block[2], block[3]])];
            // The lower four groups have six bits of their bytes; the upper four have the other two
            // bits, and four of the last bytes.
            let b: &[u8; 12] = chunk(block, 4);
            unroll!(m in 4 => {
                let v = s.bytes(chunk(block, 16 + 32 * m));
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
                    unroll!(i in N => {
                        let q = s.input(&x[i].q[n][g]);
                        let products = s.dot(s.no_products(), halves[half], q);
                        sums[i] = s.add_scaled(sums[i], products, scale * x[i].scales[n][g]);
                        let negated = &x[i].negated[n];
                        added[i] += offset * (negated[2 * g] + negated[2 * g + 1]);
                    });
                });
            });
        }
        with(s, sums, added)
    }
}

impl Format for Q6K {
    const TYPE: TensorType = TensorType::Q6K;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<210>();
        let x: [Of256<'_, S::Stored>; N] = units(x, blocks.len());
        let (mut sums, mut added) = ([s.zeros(); N], [0.0; N]);
        for (n, block) in blocks.iter().enumerate() {
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
                    let g = 4 * half + f;
                    let two = [scales[2 * f], scales[2 * f + 1]].map(|b| f32::from(b as i8) * factor);
                    unroll!(i in N => {
                        let q = s.input(&x[i].q[n][g]);
                        let products = s.products(s.dot(s.no_products(), codes[f], q));
                        let scales = s.halves(two.map(|scale| scale * x[i].scales[n][g]));
                        sums[i] = s.mul_add(products, scales, sums[i]);
                        let negated = &x[i].negated[n];
                        added[i] +=
                            32.0 * (two[0] * negated[2 * g] + two[1] * negated[2 * g + 1]);
                    });
                });
            });
        }
        with(s, sums, added)
    }
}

impl Format for Q8_0 {
    const TYPE: TensorType = TensorType::Q8_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<34>();
        let x: [Of32<'_, S::Stored>; N] = units(x, blocks.len());
        let mut sums = [s.zeros(); N];
        for (n, block) in blocks.iter().enumerate() {
            let weights = s.bytes(chunk(block, 2));
            let scale = f16([block[0], block[1]]);
            unroll!(i in N => {
                let ([q], [of_input]) = (&x[i].q[n], x[i].scales[n]);
                sums[i] = s.add_signed(sums[i], weights, s.input(q), scale * of_input);
            });
        }
        totals(s, sums)
    }
}
