//! The operations with WebAssembly's vectors of 128 bits, two for each vector, and the dot products
//! of relaxed SIMD. A module with these instructions does not start where they are missing, so no
//! call needs a check. Only the functions that run kernels are compiled with them, as on other
//! machines: so all of a page's modules share the crates that this one depends on.

use std::arch::wasm32::*;

use super::simd::{FROM_UPPER, MIDDLE, Run, Simd, f16};

/// WebAssembly's fixed-width SIMD.
#[derive(Clone, Copy)]
pub(crate) struct Simd128;

/// The same with relaxed SIMD.
#[cfg(feature = "relaxed-simd")]
#[derive(Clone, Copy)]
pub(crate) struct Relaxed;

/// Runs `work` with SIMD.
pub(crate) fn run_simd128<R: Run>(work: R) -> R::Output {
    #[target_feature(enable = "simd128")]
    fn inner<R: Run>(work: R) -> R::Output {
        work.run(Simd128)
    }
    inner(work)
}

/// Runs `work` with relaxed SIMD.
#[cfg(feature = "relaxed-simd")]
pub(crate) fn run_relaxed<R: Run>(work: R) -> R::Output {
    #[target_feature(enable = "simd128,relaxed-simd")]
    fn inner<R: Run>(work: R) -> R::Output {
        work.run(Relaxed)
    }
    inner(work)
}

/// 32 bytes, or eight numbers of 32 bits.
type Two = [v128; 2];

#[inline(always)]
fn load(bytes: &[u8; 16]) -> v128 {
    // SAFETY: the pointer is to 16 bytes. The instruction takes any alignment.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

#[inline(always)]
fn load_two(bytes: &[u8; 32]) -> Two {
    let (halves, _) = bytes.as_chunks();
    [load(&halves[0]), load(&halves[1])]
}

#[inline(always)]
fn each(v: Two, f: impl Fn(v128) -> v128) -> Two {
    [f(v[0]), f(v[1])]
}

#[inline(always)]
fn both(a: Two, b: Two, f: impl Fn(v128, v128) -> v128) -> Two {
    [f(a[0], b[0]), f(a[1], b[1])]
}

/// The lower bytes of numbers of 16 bits, with their signs.
#[inline(always)]
fn even(v: v128) -> v128 {
    i16x8_shr(i16x8_shl(v, 8), 8)
}

/// The upper bytes of numbers of 16 bits, with their signs.
#[inline(always)]
fn odd(v: v128) -> v128 {
    i16x8_shr(v, 8)
}

/// Sums of fours of the products of int8.
#[inline(always)]
fn signed_dot(a: v128, b_even: v128, b_odd: v128) -> v128 {
    i32x4_add(i32x4_dot_i16x8(even(a), b_even), i32x4_dot_i16x8(odd(a), b_odd))
}

#[inline(always)]
fn total_i32(v: v128) -> i32 {
    let two = i32x4_add(v, i32x4_shuffle::<2, 3, 0, 1>(v, v));
    i32x4_extract_lane::<0>(two) + i32x4_extract_lane::<1>(two)
}

/// The operations that both have in common.
macro_rules! common {
    () => {
        type Bytes = Two;
        type Sums = Two;
        type Floats = Two;

        #[inline(always)]
        fn bytes(self, bytes: &[u8; 32]) -> Two {
            load_two(bytes)
        }

        #[inline(always)]
        fn join(self, first: &[u8; 16], second: &[u8; 16]) -> Two {
            [load(first), load(second)]
        }

        #[inline(always)]
        fn nibbles(self, bytes: &[u8; 16]) -> Two {
            let v = load(bytes);
            [v128_and(v, u8x16_splat(15)), v128_and(u16x8_shr(v, 4), u8x16_splat(15))]
        }

        #[inline(always)]
        fn field<const SHIFT: u32, const MASK: u8>(self, v: Two) -> Two {
            each(v, |v| v128_and(u16x8_shr(v, SHIFT), u8x16_splat(MASK)))
        }

        #[inline(always)]
        fn with_upper(self, a: Two, b: Two) -> Two {
            both(a, b, |a, b| v128_or(a, i16x8_shl(b, 4)))
        }

        #[inline(always)]
        fn triple(self, v: Two) -> Two {
            each(v, |v| i8x16_add(v, i8x16_add(v, v)))
        }

        #[inline(always)]
        fn centred(self, v: Two) -> Two {
            each(v, |v| v128_xor(v, u8x16_splat(128)))
        }

        #[inline(always)]
        fn digit(self, v: Two) -> Two {
            // With 85 and 170, centred. A comparison gives -1. That of int8 is one instruction of x86, that of bytes several.
            each(v, |v| {
                let first = i8x16_gt(v, i8x16_splat(-43));
                i8x16_abs(i8x16_add(first, i8x16_gt(v, i8x16_splat(42))))
            })
        }

        #[inline(always)]
        fn no_sums(self) -> Two {
            [u8x16_splat(0); 2]
        }

        #[inline(always)]
        fn total_of_sums(self, sums: Two) -> i32 {
            total_i32(i32x4_add(sums[0], sums[1]))
        }

        #[inline(always)]
        fn zeros(self) -> Two {
            [f32x4_splat(0.0); 2]
        }

        #[inline(always)]
        fn floats(self, values: &[f32; 8]) -> Two {
            load_two(bytemuck::cast_ref(values))
        }

        #[inline(always)]
        fn all(self, value: f32) -> Two {
            [f32x4_splat(value); 2]
        }

        #[inline(always)]
        fn halves(self, values: [f32; 2]) -> Two {
            values.map(|value| f32x4_splat(value))
        }

        #[inline(always)]
        fn halves_of_f16(self, halves: [[u8; 2]; 2]) -> Two {
            halves.map(|half| f32x4_splat(f16(half)))
        }

        #[inline(always)]
        fn store(self, v: Two, to: &mut [f32; 8]) {
            let (halves, _) = to.as_chunks_mut::<4>();
            for (half, v) in halves.iter_mut().zip(v) {
                // SAFETY: the pointer is to 16 bytes. The instruction takes any alignment.
                unsafe { v128_store(half.as_mut_ptr().cast(), v) };
            }
        }

        #[inline(always)]
        fn f16s(self, bytes: &[u8; 16]) -> Two {
            let v = load(bytes);
            each([u32x4_extend_low_u16x8(v), u32x4_extend_high_u16x8(v)], |v| {
                // See `f16` in simd.rs.
                let magnitude = i32x4_shl(v128_and(v, u32x4_splat(0x7fff)), 13);
                let sign = i32x4_shl(v128_and(v, u32x4_splat(0x8000)), 16);
                let to_f32 = f32x4_splat(f32::from_bits((127 + 112) << 23));
                v128_or(f32x4_mul(magnitude, to_f32), sign)
            })
        }

        #[inline(always)]
        fn any_f16s(self, bytes: &[u8; 16]) -> Two {
            // An exponent of all ones is one of all ones in f32 too.
            each(self.f16s(bytes), |v| {
                let magnitude = v128_and(v, u32x4_splat(0x7fff_ffff));
                let is_none = f32x4_ge(magnitude, f32x4_splat(65536.0));
                v128_or(v, v128_and(is_none, u32x4_splat(0x7f80_0000)))
            })
        }

        #[inline(always)]
        fn bf16s(self, bytes: &[u8; 16]) -> Two {
            let v = load(bytes);
            each([u32x4_extend_low_u16x8(v), u32x4_extend_high_u16x8(v)], |v| i32x4_shl(v, 16))
        }

        #[inline(always)]
        fn uppers(self, bytes: &[u8; 8]) -> Two {
            // SAFETY: the pointer is to eight bytes. The instruction takes any alignment.
            let v = unsafe { i16x8_load_extend_i8x8(bytes.as_ptr().cast()) };
            each([i32x4_extend_low_i16x8(v), i32x4_extend_high_i16x8(v)], |v| {
                // The sign fills the upper bits of a lane.
                let kept = v128_and(i32x4_shl(v, 20), u32x4_splat(FROM_UPPER));
                v128_or(kept, u32x4_splat(MIDDLE))
            })
        }

        #[inline(always)]
        fn i8s(self, bytes: &[u8; 8]) -> Two {
            // SAFETY: the pointer is to eight bytes. The instruction takes any alignment.
            let v = unsafe { i16x8_load_extend_i8x8(bytes.as_ptr().cast()) };
            [
                f32x4_convert_i32x4(i32x4_extend_low_i16x8(v)),
                f32x4_convert_i32x4(i32x4_extend_high_i16x8(v)),
            ]
        }

        #[inline(always)]
        fn add(self, a: Two, b: Two) -> Two {
            both(a, b, |a, b| f32x4_add(a, b))
        }

        #[inline(always)]
        fn total(self, v: Two) -> f32 {
            let four = f32x4_add(v[0], v[1]);
            let two = f32x4_add(four, i32x4_shuffle::<2, 3, 0, 1>(four, four));
            f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
        }
    };
}

impl Simd for Simd128 {
    common!();

    /// The even values of each half as i16, then the odd ones.
    type Stored = [[i16; 8]; 4];
    type Input = [v128; 4];
    /// Eight sums of fours.
    type Products = Two;

    #[inline(always)]
    fn stored(values: &[i8; 32]) -> [[i16; 8]; 4] {
        std::array::from_fn(|part| {
            let first = part / 2 * 16 + part % 2;
            std::array::from_fn(|i| i16::from(values[first + 2 * i]))
        })
    }

    #[inline(always)]
    fn input(self, stored: &[[i16; 8]; 4]) -> [v128; 4] {
        let bytes: &[[u8; 16]; 4] = bytemuck::cast_ref(stored);
        [load(&bytes[0]), load(&bytes[1]), load(&bytes[2]), load(&bytes[3])]
    }

    #[inline(always)]
    fn no_products(self) -> Two {
        [u8x16_splat(0); 2]
    }

    #[inline(always)]
    fn dot(self, sums: Two, codes: Two, q: [v128; 4]) -> Two {
        let low = u16x8_splat(0xff);
        let one = |sums, codes, q_even, q_odd| {
            let even = i32x4_dot_i16x8(v128_and(codes, low), q_even);
            let odd = i32x4_dot_i16x8(u16x8_shr(codes, 8), q_odd);
            i32x4_add(i32x4_add(sums, even), odd)
        };
        [one(sums[0], codes[0], q[0], q[1]), one(sums[1], codes[1], q[2], q[3])]
    }

    #[inline(always)]
    fn add_products(self, sums: Two, products: Two) -> Two {
        both(sums, products, |a, b| i32x4_add(a, b))
    }

    #[inline(always)]
    fn mul_add(self, a: Two, b: Two, c: Two) -> Two {
        both(both(a, b, |a, b| f32x4_mul(a, b)), c, |ab, c| f32x4_add(ab, c))
    }

    #[inline(always)]
    fn add_scaled(self, to: Two, products: Two, scale: f32) -> Two {
        let sums = f32x4_convert_i32x4(i32x4_add(products[0], products[1]));
        [f32x4_add(to[0], f32x4_mul(sums, f32x4_splat(scale))), to[1]]
    }

    #[inline(always)]
    fn products(self, products: Two) -> Two {
        each(products, |sums| f32x4_convert_i32x4(sums))
    }

    #[inline(always)]
    fn add_signed(self, to: Two, weights: Two, q: [v128; 4], scale: f32) -> Two {
        let sums = [signed_dot(weights[0], q[0], q[1]), signed_dot(weights[1], q[2], q[3])];
        self.add_scaled(to, sums, scale)
    }
}

#[cfg(feature = "relaxed-simd")]
impl Simd for Relaxed {
    common!();

    type Stored = [i8; 32];
    type Input = Two;
    /// Sixteen sums of pairs.
    type Products = Two;

    #[inline(always)]
    fn stored(values: &[i8; 32]) -> [i8; 32] {
        *values
    }

    #[inline(always)]
    fn input(self, stored: &[i8; 32]) -> Two {
        load_two(bytemuck::cast_ref(stored))
    }

    #[inline(always)]
    fn no_products(self) -> Two {
        [u8x16_splat(0); 2]
    }

    #[inline(always)]
    fn dot(self, sums: Two, codes: Two, q: Two) -> Two {
        // No code has bit 7, and no sum of a pair exceeds 16 bits, so all engines give the same.
        [
            i16x8_add(sums[0], i16x8_relaxed_dot_i8x16_i7x16(q[0], codes[0])),
            i16x8_add(sums[1], i16x8_relaxed_dot_i8x16_i7x16(q[1], codes[1])),
        ]
    }

    #[inline(always)]
    fn add_products(self, sums: Two, products: Two) -> Two {
        both(sums, products, |sums, pairs| i32x4_add(sums, i32x4_extadd_pairwise_i16x8(pairs)))
    }

    #[inline(always)]
    fn mul_add(self, a: Two, b: Two, c: Two) -> Two {
        [f32x4_relaxed_madd(a[0], b[0], c[0]), f32x4_relaxed_madd(a[1], b[1], c[1])]
    }

    #[inline(always)]
    fn add_scaled(self, to: Two, products: Two, scale: f32) -> Two {
        let sums = i32x4_extadd_pairwise_i16x8(i16x8_add(products[0], products[1]));
        let scaled = f32x4_relaxed_madd(f32x4_convert_i32x4(sums), f32x4_splat(scale), to[0]);
        [scaled, to[1]]
    }

    #[inline(always)]
    fn products(self, products: Two) -> Two {
        each(products, |pairs| f32x4_convert_i32x4(i32x4_extadd_pairwise_i16x8(pairs)))
    }

    #[inline(always)]
    fn add_signed(self, to: Two, weights: Two, q: Two, scale: f32) -> Two {
        let sums = i32x4_add(
            signed_dot(weights[0], even(q[0]), odd(q[0])),
            signed_dot(weights[1], even(q[1]), odd(q[1])),
        );
        let scaled = f32x4_relaxed_madd(f32x4_convert_i32x4(sums), f32x4_splat(scale), to[0]);
        [scaled, to[1]]
    }
}
