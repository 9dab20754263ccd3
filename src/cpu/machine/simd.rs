//! The operations of an instruction set.

use std::fmt::Debug;

use bytemuck::Pod;

/// Runs a block for each number below 2, 4, 8, or `N`, which is at most 4. Each run is code of its own, so
/// that arrays of vectors are registers.
macro_rules! unroll {
    ($i:ident in 2 => $body:block) => { unroll!(@ $i $body 0 1) };
    ($i:ident in 4 => $body:block) => { unroll!(@ $i $body 0 1 2 3) };
    ($i:ident in 8 => $body:block) => { unroll!(@ $i $body 0 1 2 3 4 5 6 7) };
    ($i:ident in $n:ident => $body:block) => {
        unroll!(@ n {
            if n < $n {
                let $i = n;
                $body
            }
        } 0 1 2 3)
    };
    (@ $i:ident $body:block $($number:literal)*) => {
        $({
            let $i: usize = $number;
            $body
        })*
    };
}

pub(crate) use unroll;

/// Work that is written for any instruction set. `run` has to be `#[inline(always)]`, and so has
/// everything in it that takes an `S`: only then is it compiled with the instructions of `S`.
pub(crate) trait Run {
    /// The result.
    type Output;

    /// Does the work.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

/// The operations of an instruction set, on vectors of 32 bytes. A value of the type proves that the
/// machine has the instructions.
///
/// Lane `i` of eight has bytes `4 i` to `4 i + 3`.
pub(crate) trait Simd: Copy {
    /// 32 bytes.
    type Bytes: Copy;
    /// 32 int8 activations, as they are held in memory.
    type Stored: Pod + Debug;
    /// 32 int8 activations.
    type Input: Copy;
    /// The sums of products of bytes and activations. At most 32 products of codes of 2 bits, or one of
    /// larger codes, fit into each of its lanes.
    type Products: Copy;
    /// Integer sums of many products.
    type Sums: Copy;
    /// Eight f32. `add_scaled` and `add_signed` may add a product to any of the lanes: only their total counts.
    type Floats: Copy;

    /// The activations in the form in which they are held.
    fn stored(values: &[i8; 32]) -> Self::Stored;

    fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes;
    /// 16 bytes, then 16 others.
    fn join(self, first: &[u8; 16], second: &[u8; 16]) -> Self::Bytes;
    /// The lower halves of 16 bytes, then their upper halves.
    fn nibbles(self, bytes: &[u8; 16]) -> Self::Bytes;
    /// `v >> SHIFT & MASK` for each byte.
    fn field<const SHIFT: u32, const MASK: u8>(self, v: Self::Bytes) -> Self::Bytes;
    /// `a | b << 4` for each byte. `b` has at most four bits.
    fn with_upper(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Each byte times 3, without what exceeds 8 bits.
    fn triple(self, v: Self::Bytes) -> Self::Bytes;
    /// Each byte minus 128, as an int8. Three times that, in 8 bits, is three times the byte minus 128, so `triple`
    /// comes before it or after it.
    fn centred(self, v: Self::Bytes) -> Self::Bytes;
    /// Three times each byte, divided by 256: 0, 1 or 2. Takes what `centred` gives, because not every machine
    /// compares unsigned bytes.
    fn digit(self, v: Self::Bytes) -> Self::Bytes;

    fn input(self, stored: &Self::Stored) -> Self::Input;
    fn no_products(self) -> Self::Products;
    /// Adds the products of codes from 0 to 127 and activations.
    fn dot(self, sums: Self::Products, codes: Self::Bytes, q: Self::Input) -> Self::Products;

    fn no_sums(self) -> Self::Sums;
    fn add_products(self, sums: Self::Sums, products: Self::Products) -> Self::Sums;
    fn total_of_sums(self, sums: Self::Sums) -> i32;

    /// Eight zeros.
    fn zeros(self) -> Self::Floats;
    fn floats(self, values: &[f32; 8]) -> Self::Floats;
    fn all(self, value: f32) -> Self::Floats;
    /// Four times the first value, then four times the second.
    fn halves(self, values: [f32; 2]) -> Self::Floats;
    /// Four times the first f16, then four times the second.
    fn halves_of_f16(self, halves: [[u8; 2]; 2]) -> Self::Floats;
    fn store(self, v: Self::Floats, to: &mut [f32; 8]);
    /// Eight f16, which are numbers.
    fn f16s(self, bytes: &[u8; 16]) -> Self::Floats;
    /// Eight f16, which may be infinite or NaN.
    fn any_f16s(self, bytes: &[u8; 16]) -> Self::Floats;
    /// Eight bf16.
    fn bf16s(self, bytes: &[u8; 16]) -> Self::Floats;
    /// Eight upper bytes of split f16: see [`approximate`].
    fn uppers(self, bytes: &[u8; 8]) -> Self::Floats;
    /// Eight int8.
    fn i8s(self, bytes: &[u8; 8]) -> Self::Floats;
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once where the machine can.
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The sum of the lanes.
    fn total(self, v: Self::Floats) -> f32;

    /// Adds `scale` times the products. Lanes may be mixed.
    fn add_scaled(self, to: Self::Floats, products: Self::Products, scale: f32) -> Self::Floats;
    /// The products as floats.
    fn products(self, products: Self::Products) -> Self::Floats;
    /// Adds `scale` times the products of 32 int8 weights and activations. Lanes may be mixed.
    fn add_signed(
        self,
        to: Self::Floats,
        weights: Self::Bytes,
        q: Self::Input,
        scale: f32,
    ) -> Self::Floats;
}

/// The bits of the sign, of the exponent's lower half and of the mantissa that a f32 has from an upper byte.
pub(crate) const FROM_UPPER: u32 = 0x87f0_0000;

/// The other bits of the f32. It is in the middle of the values that have the byte. A subnormal f16 counts as if it
/// were none, which puts it off by less than 2^-14.
pub(crate) const MIDDLE: u32 = 112 << 23 | 1 << 19;

/// The f32 that stands for all split f16 with this upper byte: a sign, four bits of exponent, three of mantissa.
#[inline(always)]
pub(crate) fn approximate(upper: u8) -> f32 {
    let bits = u32::from(upper);
    f32::from_bits((bits & 0x80) << 24 | bits << 20 & FROM_UPPER | MIDDLE)
}

/// The value of an f16, which is a number.
#[inline(always)]
pub(crate) fn f16(bits: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bits));
    // The exponent of a f32 is larger by 112. Multiplying also makes subnormal values right.
    const TO_F32: f32 = f32::from_bits((127 + 112) << 23);
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * TO_F32;
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}
