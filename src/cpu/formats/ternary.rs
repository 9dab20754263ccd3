//! Weights of -1, 0 and +1 times a scale.
//!
//! Kernels multiply codes of 0, 1 and 2. So they take the sum of the activations off.

use super::super::machine::{Simd, Trits, unroll};
use super::{
    Format, Input, Job, Of256, Order, RowFormat, TILE, Token, first, totals, units_of_256,
};
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

impl RowFormat for I2S {
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

/// The inputs of blocks of 256: a scale for each lane of the first half of their vectors, and of the second, and
/// negated sums.
type Planes<'a, Q> = Of256<'a, Q, 24>;

/// A block of 256: the codes of its two halves, with those of four groups in each byte, and its scale.
#[derive(Clone, Copy)]
struct Block<'a> {
    halves: [&'a [u8; 32]; 2],
    scale: [u8; 2],
}

/// Adds the products of block `n` of `R` rows, which share the reading of the inputs.
#[inline(always)]
fn add_planes<S: Simd, const R: usize, const N: usize>(
    s: S,
    sums: &mut [[S::Floats; N]; R],
    x: &[Planes<'_, S::Stored>; N],
    n: usize,
    blocks: [Block<'_>; R],
) {
    let mut of_block = [[s.zeros(); N]; R];
    unroll!(half in 2 => {
        let mut products = [[s.no_products(); N]; R];
        unroll!(p in 4 => {
            let mut codes = [s.planes(blocks[0].halves[half], p); R];
            unroll!(r in R => {
                codes[r] = s.planes(blocks[r].halves[half], p);
            });
            unroll!(i in N => {
                let q = s.input(&x[i].q[n][4 * half + p]);
                unroll!(r in R => {
                    products[r][i] = s.dot(products[r][i], codes[r], q);
                });
            });
        });
        unroll!(i in N => {
            let (scales, _) = x[i].scales[n].as_chunks();
            let of_half = s.floats(&scales[half]);
            let negated = s.floats(&scales[2]);
            unroll!(r in R => {
                let others = if half == 0 { negated } else { of_block[r][i] };
                of_block[r][i] = s.mul_add(s.products(products[r][i]), of_half, others);
            });
        });
    });
    unroll!(r in R => {
        let scale = s.all_f16(blocks[r].scale);
        unroll!(i in N => {
            sums[r][i] = s.mul_add(of_block[r][i], scale, sums[r][i]);
        });
    });
}

impl Tq2_0 {
    #[inline(always)]
    fn multiply<S: Simd, const R: usize, const N: usize>(
        s: S,
        rows: [&[u8]; R],
        x: &[Token<'_, S::Stored>; N],
    ) -> [[f32; N]; R] {
        let mut blocks: [&[[u8; 66]]; R] = [&[]; R];
        let n_blocks = rows[0].len() / 66;
        unroll!(r in R => {
            blocks[r] = first_blocks(rows[r], n_blocks);
        });
        let (x, mut sums) = (units_of_256(x, n_blocks), [[s.zeros(); N]; R]);
        #[allow(clippy::needless_range_loop, reason = "it takes a block of each row")]
        for n in 0..n_blocks {
            let mut of_rows = [Block { halves: [&[0; 32]; 2], scale: [0; 2] }; R];
            unroll!(r in R => {
                let block = &blocks[r][n];
                let halves = [chunk(block, 0), chunk(block, 32)];
                of_rows[r] = Block { halves, scale: half(block, 64) };
            });
            add_planes(s, &mut sums, &x, n, of_rows);
        }
        let mut products = [[0.0; N]; R];
        unroll!(r in R => {
            products[r] = totals(s, sums[r]);
        });
        products
    }
}

/// The first `n` blocks of a row.
#[inline(always)]
fn first_blocks<const BYTES: usize>(row: &[u8], n: usize) -> &[[u8; BYTES]] {
    &row.as_chunks().0[..n]
}

impl RowFormat for Tq2_0 {
    const TYPE: TensorType = TensorType::Tq2_0;
    const ORDER: Order = Order::Planes;

    #[inline(always)]
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N] {
        let [products] = Self::multiply(s, [row], x);
        products
    }

    #[inline(always)]
    fn two_rows<S: Simd, const N: usize>(
        s: S,
        rows: [&[u8]; 2],
        x: &[Token<'_, S::Stored>; N],
    ) -> [[f32; N]; 2] {
        if S::STREAMS_TWO && N <= S::SUMS_OF_TWO {
            return Self::multiply(s, rows, x);
        }
        [Self::row(s, rows[0], x), Self::row(s, rows[1], x)]
    }
}

/// Blocks of a row of TQ1_0 whose digits are found together.
const DIGITS_OF: usize = 16;

/// Rows whose digits are in memory together.
const DIGIT_ROWS: usize = 4;

/// Tiles of tokens that share these digits.
const DIGIT_TILES: usize = 8;

/// The codes of a part of some rows, as those of TQ2_0.
type Digits = [[[u8; 64]; DIGITS_OF]; DIGIT_ROWS];

impl Format for Tq1_0 {
    const TYPE: TensorType = TensorType::Tq1_0;
    const ORDER: Order = Order::Trits;

    /// To find the digits takes nearly as long as a product. So more tokens than a tile share them.
    #[inline(always)]
    fn rows<S: Simd>(s: S, job: &Job<'_>, out: &mut [f32]) {
        const TOKENS: usize = TILE * DIGIT_TILES;
        let all_rows = job.weights.len() / job.row_bytes;
        let mut trits = [Trits::ZEROS; DIGIT_ROWS];
        let mut digits = [[[0; 64]; DIGITS_OF]; DIGIT_ROWS];
        let mut sums = [[[s.zeros(); TILE]; DIGIT_ROWS]; DIGIT_TILES];
        for (inputs, out) in job.inputs.chunks(TOKENS).zip(out.chunks_mut(TOKENS * all_rows.max(1)))
        {
            for (n, rows) in job.weights.chunks(DIGIT_ROWS * job.row_bytes).enumerate() {
                for first in (0..job.row_bytes / 54).step_by(DIGITS_OF) {
                    let part = Part { rows, row_bytes: job.row_bytes, first };
                    part.unpack(s, &mut trits, &mut digits);
                    for (inputs, sums) in inputs.chunks(TILE).zip(&mut sums) {
                        match inputs {
                            [a] => part.add(s, &digits, [a], sums),
                            [a, b] => part.add(s, &digits, [a, b], sums),
                            [a, b, c] => part.add(s, &digits, [a, b, c], sums),
                            [a, b, c, d] => part.add(s, &digits, [a, b, c, d], sums),
                            _ => {}
                        }
                    }
                }
                for row in 0..rows.len() / job.row_bytes {
                    for token in 0..inputs.len() {
                        let sum = sums[token / TILE][row][token % TILE];
                        out[token * all_rows + DIGIT_ROWS * n + row] = s.total(sum) * job.factor;
                    }
                }
            }
        }
    }
}

/// At most `DIGITS_OF` blocks of at most `DIGIT_ROWS` rows.
#[derive(Clone, Copy)]
struct Part<'a> {
    rows: &'a [u8],
    row_bytes: usize,
    /// The first of the blocks.
    first: usize,
}

impl<'a> Part<'a> {
    /// The blocks of each row.
    #[inline(always)]
    fn blocks(self) -> impl Iterator<Item = &'a [[u8; 54]]> {
        self.rows.chunks_exact(self.row_bytes).map(move |row| {
            let blocks = &row.as_chunks().0[self.first..];
            &blocks[..blocks.len().min(DIGITS_OF)]
        })
    }

    #[inline(always)]
    fn unpack<S: Simd>(self, s: S, trits: &mut [Trits; DIGIT_ROWS], digits: &mut Digits) {
        // All rows one after the other, because what was written to memory just now is slow to read.
        for (blocks, trits) in self.blocks().zip(&mut *trits) {
            match blocks {
                // At least 64 bytes are needed.
                [block] => {
                    let mut bytes = [0; 64];
                    bytes[..54].copy_from_slice(block);
                    s.trits(&bytes, trits);
                }
                _ => s.trits(blocks.as_flattened(), trits),
            }
        }
        for ((blocks, trits), digits) in self.blocks().zip(trits).zip(digits) {
            for (b, to) in digits[..blocks.len()].iter_mut().enumerate() {
                s.block_of_trits(chunk(&trits.fours, 54 * b), chunk(&trits.fifths, 54 * b), to);
            }
        }
    }

    /// Adds the products of each row with the tokens of a tile. The first part's are the first.
    #[inline(always)]
    fn add<S: Simd, const N: usize>(
        self,
        s: S,
        digits: &Digits,
        inputs: [&Input; N],
        sums: &mut [[S::Floats; TILE]; DIGIT_ROWS],
    ) {
        let mut tokens = [inputs[0].token::<S>(); N];
        unroll!(i in N => {
            tokens[i] = inputs[i].token::<S>();
        });
        let x: [Planes<'_, S::Stored>; N] = units_of_256(&tokens, self.row_bytes / 54);
        let mut rows = self.blocks().zip(digits).zip(sums);
        while let Some(first) = rows.next() {
            match rows.next() {
                Some(second) if N <= S::SUMS_OF_TWO => self.add_rows(s, &x, [first, second]),
                second => {
                    self.add_rows(s, &x, [first]);
                    if let Some(second) = second {
                        self.add_rows(s, &x, [second]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn add_rows<S: Simd, const R: usize, const N: usize>(
        self,
        s: S,
        x: &[Planes<'_, S::Stored>; N],
        rows: [DigitRow<'_, S>; R],
    ) {
        let mut of_rows = [[s.zeros(); N]; R];
        if self.first > 0 {
            unroll!(r in R => {
                unroll!(i in N => {
                    of_rows[r][i] = rows[r].1[i];
                });
            });
        }
        let n_blocks = rows[0].0.0.len();
        for b in 0..n_blocks {
            let mut blocks = [Block { halves: [&[0; 32]; 2], scale: [0; 2] }; R];
            unroll!(r in R => {
                let (bytes, digits) = (&rows[r].0.0[b], &rows[r].0.1[b]);
                let halves = [chunk(digits, 0), chunk(digits, 32)];
                blocks[r] = Block { halves, scale: half(bytes, 52) };
            });
            add_planes(s, &mut of_rows, x, self.first + b, blocks);
        }
        unroll!(r in R => {
            unroll!(i in N => {
                rows[r].1[i] = of_rows[r][i];
            });
        });
    }
}

/// The blocks of a row with their digits, and the sums of a tile.
type DigitRow<'a, S> =
    ((&'a [[u8; 54]], &'a [[u8; 64]; DIGITS_OF]), &'a mut [<S as Simd>::Floats; TILE]);

/// `M` bytes of a block, from `at` on.
#[inline(always)]
pub(super) fn chunk<const M: usize>(block: &[u8], at: usize) -> &[u8; M] {
    match block[at..].first_chunk() {
        Some(chunk) => chunk,
        None => &[0; M],
    }
}

/// The inputs of units of 256: a scale for each lane, and negated sums.
type Lanes<'a, Q> = Of256<'a, Q, 16>;

/// A type whose rows are units of 256 values, `BYTES` bytes each. The last one may be shorter.
trait UnitFormat<const BYTES: usize> {
    /// The bytes with all codes, and the scale of each lane.
    fn open<S: Simd>(s: S, unit: &[u8; BYTES]) -> ([S::Bytes; 2], S::Floats);

    /// The codes for vector `n` of the inputs.
    fn codes<S: Simd>(s: S, bytes: [S::Bytes; 2], n: usize) -> S::Bytes;
}

/// The products of a row of units with `N` tokens.
#[inline(always)]
fn row_of_units<S: Simd, F: UnitFormat<BYTES>, const BYTES: usize, const N: usize>(
    s: S,
    row: &[u8],
    x: &[Token<'_, S::Stored>; N],
) -> [f32; N] {
    let (whole, rest) = row.as_chunks::<BYTES>();
    let mut sums = [s.zeros(); N];
    let of_whole = units_of_256(x, whole.len());
    for (n, unit) in whole.iter().enumerate() {
        add_unit::<S, F, BYTES, N>(s, &mut sums, &of_whole, n, unit);
    }
    if !rest.is_empty() {
        let mut unit = [0; BYTES];
        unit[..rest.len()].copy_from_slice(rest);
        let all = units_of_256(x, whole.len() + 1);
        add_unit::<S, F, BYTES, N>(s, &mut sums, &all, whole.len(), &unit);
    }
    totals(s, sums)
}

/// Adds the products of unit `n`.
#[inline(always)]
fn add_unit<S: Simd, F: UnitFormat<BYTES>, const BYTES: usize, const N: usize>(
    s: S,
    sums: &mut [S::Floats; N],
    x: &[Lanes<'_, S::Stored>; N],
    n: usize,
    unit: &[u8; BYTES],
) {
    let (bytes, scale) = F::open(s, unit);
    // Two sums of a token alone, because a product takes some cycles.
    let each = if N == 1 { 2 } else { 1 };
    let mut products = [[s.no_products(); 2]; N];
    unroll!(f in 8 => {
        let codes = F::codes(s, bytes, f);
        unroll!(i in N => {
            let sum = &mut products[i][f % each];
            *sum = s.dot(*sum, codes, s.input(&x[i].q[n][f]));
        });
    });
    unroll!(i in N => {
        let [first, second] = products[i];
        let products = if each == 2 { s.both(first, second) } else { first };
        let (scales, _) = x[i].scales[n].as_chunks();
        let sum = s.mul_add(s.products(products), s.floats(&scales[0]), s.floats(&scales[1]));
        sums[i] = s.mul_add(sum, scale, sums[i]);
    });
}

/// Bits `2 n` and `2 n + 1` of each byte.
#[inline(always)]
fn two_bits<S: Simd>(s: S, v: S::Bytes, n: usize) -> S::Bytes {
    match n {
        0 => s.field::<0, 3>(v),
        1 => s.field::<2, 3>(v),
        2 => s.field::<4, 3>(v),
        _ => s.field::<6, 3>(v),
    }
}

/// The f16 at `at`.
#[inline(always)]
fn half(unit: &[u8], at: usize) -> [u8; 2] {
    *chunk(unit, at)
}

impl UnitFormat<72> for Q2_0 {
    #[inline(always)]
    fn open<S: Simd>(s: S, unit: &[u8; 72]) -> ([S::Bytes; 2], S::Floats) {
        let first = s.join(chunk(unit, 2), chunk(unit, 20));
        let second = s.join(chunk(unit, 38), chunk(unit, 56));
        let scales = [half(unit, 0), half(unit, 36), half(unit, 18), half(unit, 54)];
        (s.even_and_odd(first, second), s.pairs_of_f16(scales))
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, bytes: [S::Bytes; 2], n: usize) -> S::Bytes {
        two_bits(s, bytes[n / 4], n % 4)
    }
}

impl UnitFormat<68> for Q2_0Of128 {
    #[inline(always)]
    fn open<S: Simd>(s: S, unit: &[u8; 68]) -> ([S::Bytes; 2], S::Floats) {
        let (first, second) = (s.bytes(chunk(unit, 2)), s.bytes(chunk(unit, 36)));
        let scale = s.alternating_f16([half(unit, 0), half(unit, 34)]);
        (s.even_and_odd(first, second), scale)
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, bytes: [S::Bytes; 2], n: usize) -> S::Bytes {
        two_bits(s, bytes[n / 4], n % 4)
    }
}

impl UnitFormat<36> for Q1_0 {
    #[inline(always)]
    fn open<S: Simd>(s: S, unit: &[u8; 36]) -> ([S::Bytes; 2], S::Floats) {
        let v = s.join(chunk(unit, 2), chunk(unit, 20));
        ([v; 2], s.halves_of_f16([half(unit, 0), half(unit, 18)]))
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, [v, _]: [S::Bytes; 2], n: usize) -> S::Bytes {
        match n {
            0 => s.field::<0, 1>(v),
            1 => s.field::<1, 1>(v),
            2 => s.field::<2, 1>(v),
            3 => s.field::<3, 1>(v),
            4 => s.field::<4, 1>(v),
            5 => s.field::<5, 1>(v),
            6 => s.field::<6, 1>(v),
            _ => s.field::<7, 1>(v),
        }
    }
}

/// A type of weights that is in units.
macro_rules! of_units {
    ($format:ident, $units:ident, $bytes:literal, $order:ident) => {
        impl RowFormat for $format {
            const TYPE: TensorType = TensorType::$format;
            const ORDER: Order = Order::$order;

            #[inline(always)]
            fn row<S: Simd, const N: usize>(
                s: S,
                row: &[u8],
                x: &[Token<'_, S::Stored>; N],
            ) -> [f32; N] {
                row_of_units::<S, $units, $bytes, N>(s, row, x)
            }
        }
    };
}

of_units!(Q2_0, Q2_0, 72, Fours);
of_units!(Q2_0Of128, Q2_0Of128, 68, Fours);
of_units!(Pq2_0, Q2_0Of128, 68, Fours);
of_units!(Q1_0, Q1_0, 36, Eights);
