//! The operations with WebAssembly's vectors of 128 bits, two for each vector, and the dot products
//! of relaxed SIMD. A module with these instructions does not start where they are missing, so no
//! call needs a check. Only the functions that run kernels are compiled with them, as on other
//! machines: so all of a page's modules share the crates that this one depends on.

use std::arch::wasm32::*;

use super::simd::{FROM_UPPER, MIDDLE, Run, Simd, f16};
use super::trits::{OF_THREE, OF_TWO, Trits};

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
fn store(v: v128, to: &mut [u8; 16]) {
    // SAFETY: the pointer is to 16 bytes. The instruction takes any alignment.
    unsafe { v128_store(to.as_mut_ptr().cast(), v) };
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

/// Eight times the first byte, then eight times the second.
#[inline(always)]
fn fields(first: u8, second: u8) -> v128 {
    u64x2(u64::from_le_bytes([first; 8]), u64::from_le_bytes([second; 8]))
}

#[inline(always)]
fn total_i32(v: v128) -> i32 {
    let two = i32x4_add(v, i32x4_shuffle::<2, 3, 0, 1>(v, v));
    i32x4_extract_lane::<0>(two) + i32x4_extract_lane::<1>(two)
}

/// See `f16` in simd.rs.
#[inline(always)]
fn floats_of_f16(v: v128) -> Two {
    each([u32x4_extend_low_u16x8(v), u32x4_extend_high_u16x8(v)], |v| {
        let magnitude = i32x4_shl(v128_and(v, u32x4_splat(0x7fff)), 13);
        let sign = i32x4_shl(v128_and(v, u32x4_splat(0x8000)), 16);
        let to_f32 = f32x4_splat(f32::from_bits((127 + 112) << 23));
        v128_or(f32x4_mul(magnitude, to_f32), sign)
    })
}

/// What exceeds 8 bits in products of 16 bits: of those of the even bytes, and of the odd ones.
#[inline(always)]
fn excess([of_even, of_odd]: Two) -> v128 {
    v128_or(u16x8_shr(of_even, 8), v128_and(of_odd, u16x8_splat(0xff00)))
}

/// As [`Simd::trits`], of 16 bytes.
#[inline(always)]
fn trits_of_16(bytes: &[u8; 16], fours: &mut [u8; 16], fifths: &mut [u8; 16]) {
    let low = u16x8_splat(0xff);
    let v = load(bytes);
    let products = each([v128_and(v, low), u16x8_shr(v, 8)], |v| i16x8_mul(v, u16x8_splat(27)));
    let three = excess(products);
    let two = excess(each(products, |v| i16x8_mul(v128_and(v, low), u16x8_splat(9))));
    // An index that a table does not have gives 0.
    let three = v128_or(
        i8x16_swizzle(load(&OF_THREE[0]), three),
        i8x16_swizzle(load(&OF_THREE[1]), i8x16_sub(three, u8x16_splat(16))),
    );
    store(v128_or(three, i8x16_swizzle(load(&OF_TWO[0]), two)), fours);
    store(i8x16_swizzle(load(&OF_TWO[1]), two), fifths);
}

/// See [`Simd::block_of_trits`].
#[inline(always)]
fn block_of_trits(fours: &[u8; 52], fifths: &[u8; 48], to: &mut [u8; 64]) {
    let (fours, last) = fours.as_chunks();
    let (fifths, to) = (fifths.as_chunks().0, to.as_chunks_mut().0);
    store(load(&fours[0]), &mut to[0]);
    store(load(&fours[1]), &mut to[1]);
    let next = load(&fours[2]);
    let low = u8x16_splat(15);
    let (lower, upper) = (v128_and(next, low), v128_and(u16x8_shr(next, 4), low));
    let fifth = i16x8_shl(load(&fifths[2]), 2);
    store(v128_or(v128_or(lower, load(&fifths[0])), fifth), &mut to[2]);
    let last = u32x4_splat(u32::from_le_bytes([last[0], last[1], last[2], last[3]]));
    let fields = v128_and(last, u32x4(0x0303_0303, 0x3030_3030, 0x0c0c_0c0c, 0xc0c0_c0c0));
    // Times powers of two, because there is no shift by different numbers.
    let last = i16x8_mul(fields, u16x8(64, 64, 4, 4, 16, 16, 1, 1));
    store(v128_or(v128_or(upper, load(&fifths[1])), last), &mut to[3]);
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
        fn even_and_odd(self, a: Two, b: Two) -> [Two; 2] {
            [
                both(a, b, |a, b| i32x4_shuffle::<0, 2, 4, 6>(a, b)),
                both(a, b, |a, b| i32x4_shuffle::<1, 3, 5, 7>(a, b)),
            ]
        }

        #[inline(always)]
        fn trits(self, bytes: &[u8], digits: &mut Trits) {
            for at in Trits::offsets(bytes.len()) {
                let [fours, fifths] = digits.places(at);
                let places = fours.as_chunks_mut().0.iter_mut().zip(fifths.as_chunks_mut().0);
                for (bytes, (fours, fifths)) in bytes[at..].as_chunks().0.iter().zip(places) {
                    trits_of_16(bytes, fours, fifths);
                }
            }
        }

        #[inline(always)]
        fn block_of_trits(self, fours: &[u8; 52], fifths: &[u8; 48], to: &mut [u8; 64]) {
            block_of_trits(fours, fifths, to);
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
        fn all_f16(self, value: [u8; 2]) -> Two {
            [f32x4_splat(f16(value)); 2]
        }

        #[inline(always)]
        fn halves_of_f16(self, values: [[u8; 2]; 2]) -> Two {
            values.map(|value| f32x4_splat(f16(value)))
        }

        #[inline(always)]
        fn alternating_f16(self, values: [[u8; 2]; 2]) -> Two {
            let [first, second] = values.map(f16);
            [f32x4(first, first, second, second); 2]
        }

        #[inline(always)]
        fn pairs_of_f16(self, values: [[u8; 2]; 4]) -> Two {
            let [a, b, c, d] = values.map(u16::from_le_bytes);
            floats_of_f16(u16x8(a, a, b, b, c, c, d, d))
        }

        #[inline(always)]
        fn store(self, v: Two, to: &mut [f32; 8]) {
            let bytes: &mut [u8; 32] = bytemuck::cast_mut(to);
            let halves = bytes.as_chunks_mut().0;
            halves.iter_mut().zip(v).for_each(|(half, v)| store(v, half));
        }

        #[inline(always)]
        fn f16s(self, bytes: &[u8; 16]) -> Two {
            floats_of_f16(load(bytes))
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

    const SUMS_OF_TWO: usize = 1;
    const STREAMS_TWO: bool = true;

    /// The codes stay where they are in their bytes.
    const PLACES: [f32; 4] = [1.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 64.0];

    #[inline(always)]
    fn planes(self, bytes: &[u8; 32], n: usize) -> Two {
        let v = u64x2_splat(u64::from_le_bytes(bytes.as_chunks().0[n]));
        [v128_and(v, fields(0x03, 0x0c)), v128_and(v, fields(0x30, 0xc0))]
    }

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
    fn both(self, a: Two, b: Two) -> Two {
        both(a, b, |a, b| i32x4_add(a, b))
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

    const SUMS_OF_TWO: usize = 1;
    const STREAMS_TWO: bool = true;

    /// Most codes stay where they are in their bytes. The upper ones are moved by two bits, so that bit 7 is free
    /// and the sums of four products fit into 16 bits.
    const PLACES: [f32; 4] = [1.0, 1.0 / 4.0, 1.0 / 4.0, 1.0 / 16.0];

    #[inline(always)]
    fn planes(self, bytes: &[u8; 32], n: usize) -> Two {
        let v = u64x2_splat(u64::from_le_bytes(bytes.as_chunks().0[n]));
        [v128_and(v, fields(0x03, 0x0c)), v128_and(u64x2_shr(v, 2), fields(0x0c, 0x30))]
    }

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
    fn both(self, a: Two, b: Two) -> Two {
        both(a, b, |a, b| i16x8_add(a, b))
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
