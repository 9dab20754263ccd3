//! The operations in plain Rust.

use std::array::from_fn;

use half::bf16;

use super::simd::{Simd, approximate, f16};

/// Needs no instructions but those that every machine has.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Simd for Scalar {
    type Bytes = [u8; 32];
    type Stored = [i8; 32];
    type Input = [i8; 32];
    type Products = [i32; 8];
    type Sums = [i32; 8];
    type Floats = [f32; 8];

    #[inline(always)]
    fn stored(values: &[i8; 32]) -> [i8; 32] {
        *values
    }

    #[inline(always)]
    fn bytes(self, bytes: &[u8; 32]) -> [u8; 32] {
        *bytes
    }

    #[inline(always)]
    fn join(self, first: &[u8; 16], second: &[u8; 16]) -> [u8; 32] {
        from_fn(|i| if i < 16 { first[i] } else { second[i - 16] })
    }

    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 16]) -> [u8; 32] {
        from_fn(|i| if i < 16 { bytes[i] & 15 } else { bytes[i - 16] >> 4 })
    }

    #[inline(always)]
    fn field<const SHIFT: u32, const MASK: u8>(self, v: [u8; 32]) -> [u8; 32] {
        v.map(|byte| byte >> SHIFT & MASK)
    }

    #[inline(always)]
    fn with_upper(self, a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        from_fn(|i| a[i] | b[i] << 4)
    }

    #[inline(always)]
    fn triple(self, v: [u8; 32]) -> [u8; 32] {
        v.map(|byte| byte.wrapping_mul(3))
    }

    #[inline(always)]
    fn centred(self, v: [u8; 32]) -> [u8; 32] {
        v.map(|byte| byte ^ 128)
    }

    #[inline(always)]
    fn digit(self, v: [u8; 32]) -> [u8; 32] {
        v.map(|byte| ((u16::from(byte ^ 128) * 3) >> 8) as u8)
    }

    #[inline(always)]
    fn input(self, stored: &[i8; 32]) -> [i8; 32] {
        *stored
    }

    #[inline(always)]
    fn no_products(self) -> [i32; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn dot(self, mut sums: [i32; 8], codes: [u8; 32], q: [i8; 32]) -> [i32; 8] {
        for i in 0..32 {
            sums[i / 4] += i32::from(codes[i]) * i32::from(q[i]);
        }
        sums
    }

    #[inline(always)]
    fn no_sums(self) -> [i32; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn add_products(self, sums: [i32; 8], products: [i32; 8]) -> [i32; 8] {
        from_fn(|i| sums[i] + products[i])
    }

    #[inline(always)]
    fn total_of_sums(self, sums: [i32; 8]) -> i32 {
        sums.iter().sum()
    }

    #[inline(always)]
    fn zeros(self) -> [f32; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    fn floats(self, values: &[f32; 8]) -> [f32; 8] {
        *values
    }

    #[inline(always)]
    fn all(self, value: f32) -> [f32; 8] {
        [value; 8]
    }

    #[inline(always)]
    fn halves(self, values: [f32; 2]) -> [f32; 8] {
        from_fn(|i| values[i / 4])
    }

    #[inline(always)]
    fn halves_of_f16(self, halves: [[u8; 2]; 2]) -> [f32; 8] {
        self.halves(halves.map(f16))
    }

    #[inline(always)]
    fn store(self, v: [f32; 8], to: &mut [f32; 8]) {
        *to = v;
    }

    #[inline(always)]
    fn f16s(self, bytes: &[u8; 16]) -> [f32; 8] {
        from_fn(|i| f16([bytes[2 * i], bytes[2 * i + 1]]))
    }

    #[inline(always)]
    fn any_f16s(self, bytes: &[u8; 16]) -> [f32; 8] {
        from_fn(|i| half::f16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f32())
    }

    #[inline(always)]
    fn bf16s(self, bytes: &[u8; 16]) -> [f32; 8] {
        from_fn(|i| bf16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f32())
    }

    #[inline(always)]
    fn uppers(self, bytes: &[u8; 8]) -> [f32; 8] {
        bytes.map(approximate)
    }

    #[inline(always)]
    fn i8s(self, bytes: &[u8; 8]) -> [f32; 8] {
        bytes.map(|byte| f32::from(byte as i8))
    }

    #[inline(always)]
    fn add(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn total(self, v: [f32; 8]) -> f32 {
        let four: [f32; 4] = from_fn(|i| v[i] + v[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }

    #[inline(always)]
    fn add_scaled(self, to: [f32; 8], products: [i32; 8], scale: f32) -> [f32; 8] {
        from_fn(|i| to[i] + products[i] as f32 * scale)
    }

    #[inline(always)]
    fn products(self, products: [i32; 8]) -> [f32; 8] {
        products.map(|sum| sum as f32)
    }

    #[inline(always)]
    fn add_signed(self, to: [f32; 8], weights: [u8; 32], q: [i8; 32], scale: f32) -> [f32; 8] {
        let mut sums = [0; 8];
        for i in 0..32 {
            sums[i / 4] += i32::from(weights[i] as i8) * i32::from(q[i]);
        }
        self.add_scaled(to, sums, scale)
    }
}
