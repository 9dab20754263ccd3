//! Weights of -1, 0 and +1 times a scale.
//!
//! Kernels multiply codes of 0, 1 and 2. So they take the sum of the activations off.

use super::super::machine::{Simd, unroll};
use super::{Format, Order, Token, Units, first, totals, units};
use crate::gguf::TensorType;

/// Blocks of 128 in 32 bytes; byte `j` has values `j`, `32 + j`, `64 + j` and `96 + j`, the first in its
/// highest bits.
pub(super) struct I2S;

/// Blocks of 256 in 64 bytes; as I2_S, but with the first in the lowest bits. Then a scale.
pub(super) struct Tq2_0;

/// Blocks of 256 in 52 bytes, with five values in a byte. Then a scale.
pub(super) struct Tq1_0;

/// Blocks of 64 in 16 bytes, with four neighbours in a byte, after a scale.
pub(super) struct Q2_0;

/// Blocks of 128 in 32 bytes, with four neighbours in a byte, after a scale.
pub(super) struct Q2_0Of128;

/// The same under another number.
pub(super) struct Pq2_0;

/// Blocks of 128 in 16 bytes, with eight neighbours in a byte, after a scale. No value is 0.
pub(super) struct Q1_0;

/// Blocks of I2_S whose products fit into [`Simd::Products`].
const BLOCKS: usize = 8;

impl Format for I2S {
    const TYPE: TensorType = TensorType::I2S;
    const ORDER: Order = Order::Rows;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<32>();
        let mut q: [&[[S::Stored; 4]]; N] = [&[]; N];
        unroll!(i in N => {
            q[i] = first(x[i].q, blocks.len());
        });
        let mut sums = [s.no_sums(); N];
        // Several sums for each token, because a product takes some cycles.
        let each = if N == 1 { 4 } else { 2 };
        for (n, blocks) in blocks.chunks(BLOCKS).enumerate() {
            let mut products = [[s.no_products(); 4]; N];
            let mut q = q;
            unroll!(i in N => {
                q[i] = &q[i][BLOCKS * n..][..blocks.len()];
            });
            for (b, block) in blocks.iter().enumerate() {
                let v = s.bytes(block);
                let codes = [
                    s.field::<6, 3>(v),
                    s.field::<4, 3>(v),
                    s.field::<2, 3>(v),
                    s.field::<0, 3>(v),
                ];
                unroll!(i in N => {
                    let q = &q[i][b];
                    unroll!(f in 4 => {
                        let sum = &mut products[i][f % each];
                        *sum = s.dot(*sum, codes[f], s.input(&q[f]));
                    });
                });
            }
            unroll!(i in N => {
                unroll!(f in 4 => {
                    if f < each {
                        sums[i] = s.add_products(sums[i], products[i][f]);
                    }
                });
            });
        }
        let mut products = [0.0; N];
        unroll!(i in N => {
            products[i] = (s.total_of_sums(sums[i]) - x[i].row_sum) as f32 / x[i].row_scale;
        });
        products
    }
}

/// The inputs of blocks of 256.
type Of256<'a, Q> = Units<'a, Q, 8, 8, 16>;

/// Adds the products of block `n` of 256 codes with one `scale`, 32 codes in each vector.
#[inline(always)]
fn add_256<S: Simd, const N: usize>(
    s: S,
    sums: &mut [S::Floats; N],
    x: &[Of256<'_, S::Stored>; N],
    n: usize,
    codes: [S::Bytes; 8],
    scale: [u8; 2],
) {
    let scale = s.halves_of_f16([scale; 2]);
    unroll!(i in N => {
        let (q, scales) = (&x[i].q[n], &x[i].scales[n]);
        let (negated, _) = x[i].negated[n].as_chunks();
        let mut sum = s.add(s.floats(&negated[0]), s.floats(&negated[1]));
        unroll!(f in 8 => {
            let products = s.dot(s.no_products(), codes[f], s.input(&q[f]));
            sum = s.add_scaled(sum, products, scales[f]);
        });
        sums[i] = s.mul_add(sum, scale, sums[i]);
    });
}

impl Format for Tq2_0 {
    const TYPE: TensorType = TensorType::Tq2_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<66>();
        let (x, mut sums) = (units(x, blocks.len()), [s.zeros(); N]);
        for (n, block) in blocks.iter().enumerate() {
            let (halves, scale) = block.as_chunks::<32>();
            let [v, w] = [s.bytes(&halves[0]), s.bytes(&halves[1])];
            let codes = [
                s.field::<0, 3>(v),
                s.field::<2, 3>(v),
                s.field::<4, 3>(v),
                s.field::<6, 3>(v),
                s.field::<0, 3>(w),
                s.field::<2, 3>(w),
                s.field::<4, 3>(w),
                s.field::<6, 3>(w),
            ];
            add_256(s, &mut sums, &x, n, codes, [scale[0], scale[1]]);
        }
        totals(s, sums)
    }
}

impl Format for Tq1_0 {
    const TYPE: TensorType = TensorType::Tq1_0;
    const ORDER: Order = Order::Groups;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<54>();
        let (x, mut sums) = (units(x, blocks.len()), [s.zeros(); N]);
        for (n, block) in blocks.iter().enumerate() {
            // A byte is a fraction in base 3. Each time it is multiplied by 3, its next digit is what
            // exceeds 8 bits. 32 bytes have five digits each, then 16 bytes five, then 4 bytes four.
            let fives: &[u8; 32] = chunk(block, 0);
            let v0 = s.centred(s.bytes(fives));
            let v1 = s.triple(v0);
            let v2 = s.triple(v1);
            let v3 = s.triple(v2);
            let v4 = s.triple(v3);
            let sixteen: &[u8; 16] = chunk(block, 32);
            let w0 = s.centred(s.join(sixteen, &times(sixteen, &[3; 16])));
            let w1 = s.triple(s.triple(w0));
            let four = u128::from(u32::from_le_bytes(*chunk(block, 48)));
            let last = (four | four << 32 | four << 64 | four << 96).to_le_bytes();
            let w2 = s.centred(s.join(&times(sixteen, &[81; 16]), &times(&last, &POWERS)));
            let codes = [
                s.digit(v0),
                s.digit(v1),
                s.digit(v2),
                s.digit(v3),
                s.digit(v4),
                s.digit(w0),
                s.digit(w1),
                s.digit(w2),
            ];
            add_256(s, &mut sums, &x, n, codes, [block[52], block[53]]);
        }
        totals(s, sums)
    }
}

/// `M` bytes of a block, from `at` on.
#[inline(always)]
pub(super) fn chunk<const M: usize>(block: &[u8], at: usize) -> &[u8; M] {
    match block[at..].first_chunk() {
        Some(chunk) => chunk,
        None => &[0; M],
    }
}

/// The factors that make the next digits of four bytes the first ones.
const POWERS: [u8; 16] = [1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27];

/// Each byte times a factor, without what exceeds 8 bits.
#[inline(always)]
fn times(bytes: &[u8; 16], factors: &[u8; 16]) -> [u8; 16] {
    let mut products = [0; 16];
    for i in 0..16 {
        products[i] = bytes[i].wrapping_mul(factors[i]);
    }
    products
}

/// The inputs of units of 128, with a scale and a negated sum for each lane.
type Of128<'a, Q> = Units<'a, Q, 4, 8, 8>;

/// Adds the products of unit `n`: 128 codes in 32 bytes, with four neighbours in a byte. `scale` is the
/// scale of each lane.
#[inline(always)]
fn add_fours<S: Simd, const N: usize>(
    s: S,
    sums: &mut [S::Floats; N],
    x: &[Of128<'_, S::Stored>; N],
    n: usize,
    v: S::Bytes,
    scale: S::Floats,
) {
    let codes = [s.field::<0, 3>(v), s.field::<2, 3>(v), s.field::<4, 3>(v), s.field::<6, 3>(v)];
    add_unit(s, sums, x, n, codes, scale);
}

/// Adds the products of unit `n`: four vectors of codes, whose lanes have scales of their own.
#[inline(always)]
fn add_unit<S: Simd, const N: usize>(
    s: S,
    sums: &mut [S::Floats; N],
    x: &[Of128<'_, S::Stored>; N],
    n: usize,
    codes: [S::Bytes; 4],
    scale: S::Floats,
) {
    unroll!(i in N => {
        let q = &x[i].q[n];
        let mut products = s.no_products();
        unroll!(f in 4 => {
            products = s.dot(products, codes[f], s.input(&q[f]));
        });
        let (scales, negated) = (s.floats(&x[i].scales[n]), s.floats(&x[i].negated[n]));
        let sum = s.mul_add(s.products(products), scales, negated);
        sums[i] = s.mul_add(sum, scale, sums[i]);
    });
}

impl Format for Q2_0 {
    const TYPE: TensorType = TensorType::Q2_0;
    const ORDER: Order = Order::Fours;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (pairs, rest) = row.as_chunks::<36>();
        let n = pairs.len() + usize::from(!rest.is_empty());
        let (x, mut sums) = (units(x, n), [s.zeros(); N]);
        for (n, pair) in pairs.iter().enumerate() {
            let codes = s.join(chunk(pair, 2), chunk(pair, 20));
            let scale = s.halves_of_f16([[pair[0], pair[1]], [pair[18], pair[19]]]);
            add_fours(s, &mut sums, &x, n, codes, scale);
        }
        if !rest.is_empty() {
            let codes = s.join(chunk(rest, 2), &[0; 16]);
            let scale = s.halves_of_f16([[rest[0], rest[1]], [0; 2]]);
            add_fours(s, &mut sums, &x, pairs.len(), codes, scale);
        }
        totals(s, sums)
    }
}

impl Format for Q2_0Of128 {
    const TYPE: TensorType = TensorType::Q2_0Of128;
    const ORDER: Order = Order::Fours;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<34>();
        let (x, mut sums) = (units(x, blocks.len()), [s.zeros(); N]);
        for (n, block) in blocks.iter().enumerate() {
            let codes = s.bytes(chunk(block, 2));
            let scale = s.halves_of_f16([[block[0], block[1]]; 2]);
            add_fours(s, &mut sums, &x, n, codes, scale);
        }
        totals(s, sums)
    }
}

impl Format for Pq2_0 {
    const TYPE: TensorType = TensorType::Pq2_0;
    const ORDER: Order = Order::Fours;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        Q2_0Of128::row(s, row, x)
    }
}

impl Format for Q1_0 {
    const TYPE: TensorType = TensorType::Q1_0;
    const ORDER: Order = Order::Eights;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let (blocks, _) = row.as_chunks::<18>();
        let (x, mut sums) = (units(x, blocks.len()), [s.zeros(); N]);
        for (n, block) in blocks.iter().enumerate() {
            let v = s.nibbles(chunk(block, 2));
            let codes =
                [s.field::<0, 1>(v), s.field::<1, 1>(v), s.field::<2, 1>(v), s.field::<3, 1>(v)];
            let scale = s.halves_of_f16([[block[0], block[1]]; 2]);
            add_unit(s, &mut sums, &x, n, codes, scale);
        }
        totals(s, sums)
    }
}
