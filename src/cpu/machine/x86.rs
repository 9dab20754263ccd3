//! The operations with AVX2, and the dot products with AVX-512 VNNI.
//!
//! Both work on vectors of 256 bits, so AVX-512 differs only in its products: one instruction instead
//! of two or three, with sums of 32 bits.

use std::arch::x86_64::*;

use super::simd::{FROM_UPPER, MIDDLE, Run, Simd};
use super::trits::{OF_BYTES, OF_THREE, OF_TWO, Trits};

/// The second table of [`OF_THREE`], which takes back what the first one gives for the lower bits of an index.
const OF_THREE_ABOVE: [u8; 16] = {
    let (mut table, mut n) = (OF_THREE[1], 0);
    while n < 16 {
        table[n] ^= OF_THREE[0][n];
        n += 1;
    }
    table
};

/// Proves that the machine has AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Proves that the machine also has AVX-512 VNNI on vectors of 256 bits.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Avx2);

pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

pub(crate) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Runs `work` with AVX2. Panics on a machine without it, which [`super::InstructionSet`] does not
/// offer.
pub(crate) fn run_avx2<R: Run>(work: R) -> R::Output {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner<R: Run>(work: R) -> R::Output {
        work.run(Avx2(()))
    }
    assert!(has_avx2());
    // SAFETY: the machine has the instructions, as was checked just now.
    unsafe { inner(work) }
}

/// Runs `work` with AVX-512. Panics on a machine without it.
pub(crate) fn run_avx512<R: Run>(work: R) -> R::Output {
    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
    fn inner<R: Run>(work: R) -> R::Output {
        work.run(Avx512(Avx2(())))
    }
    assert!(has_avx512());
    // SAFETY: the machine has the instructions, as was checked just now.
    unsafe { inner(work) }
}

/// Calls intrinsics of AVX2, FMA and F16C on behalf of a method that has `self`.
macro_rules! avx2 {
    ($($call:tt)*) => {
        // SAFETY: a value of `Avx2` exists only where `run_avx2` or `run_avx512` found the
        // instructions. Pointers come from references to arrays of the size that is read or
        // written, and the intrinsics take any alignment.
        unsafe { $($call)* }
    };
}

impl Avx2 {
    /// The sums of pairs, as sums of fours.
    #[inline(always)]
    fn widened(self, pairs: __m256i) -> __m256i {
        avx2!(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }

    #[inline(always)]
    fn add_scaled_sums(self, to: __m256, sums: __m256i, scale: __m256) -> __m256 {
        avx2!(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, to))
    }

    /// A table for each half of a vector.
    #[inline(always)]
    fn table(self, table: &[u8; 16]) -> __m256i {
        avx2!(_mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())))
    }

    /// What exceeds 8 bits in products of 16 bits: of those of the even bytes, and of the odd ones.
    #[inline(always)]
    fn excess(self, of_even: __m256i, of_odd: __m256i) -> __m256i {
        avx2!({
            let of_even = _mm256_srli_epi16::<8>(of_even);
            _mm256_blendv_epi8(of_even, of_odd, _mm256_set1_epi16(-256))
        })
    }

    /// As [`Simd::trits`], of 32 bytes.
    #[inline(always)]
    fn trits_of_32(self, bytes: &[u8; 32], fours: &mut [u8; 32], fifths: &mut [u8; 32]) {
        avx2!({
            let v = _mm256_loadu_si256(bytes.as_ptr().cast());
            let of_even = _mm256_maddubs_epi16(v, _mm256_set1_epi16(27));
            let of_odd = _mm256_maddubs_epi16(v, _mm256_set1_epi16(27 << 8));
            let three = self.excess(of_even, of_odd);
            let rest = _mm256_blendv_epi8(
                of_even,
                _mm256_slli_epi16::<8>(of_odd),
                _mm256_set1_epi16(-256),
            );
            let of_even = _mm256_maddubs_epi16(rest, _mm256_set1_epi16(9));
            let of_odd = _mm256_maddubs_epi16(rest, _mm256_set1_epi16(9 << 8));
            let two = self.excess(of_even, of_odd);
            // An index takes its lowest four bits; one below 0 gives 0. So both tables together give the entry
            // of an index from 16 on, if the second one takes back what the first one gives.
            let above = _mm256_sub_epi8(three, _mm256_set1_epi8(16));
            let low = _mm256_shuffle_epi8(self.table(&OF_THREE[0]), three);
            let high = _mm256_shuffle_epi8(self.table(&OF_THREE_ABOVE), above);
            let last = _mm256_shuffle_epi8(self.table(&OF_TWO[0]), two);
            let four = _mm256_xor_si256(_mm256_xor_si256(low, high), last);
            let fifth = _mm256_shuffle_epi8(self.table(&OF_TWO[1]), two);
            _mm256_storeu_si256(fours.as_mut_ptr().cast(), four);
            _mm256_storeu_si256(fifths.as_mut_ptr().cast(), fifth);
        })
    }

    #[inline(always)]
    fn total_of(self, v: __m256i) -> i32 {
        avx2!({
            let four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b_11_10_11_10>(four));
            let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b_01_01_01_01>(two));
            _mm_cvtsi128_si32(one)
        })
    }
}

/// As [`Simd::trits`], with tables of all bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn trits_vbmi(bytes: &[u8], digits: &mut Trits) {
    // SAFETY: the pointers are to 64 bytes each. The instructions take any alignment.
    let load = |bytes: &[u8; 64]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    // SAFETY: as above.
    let store = |to: &mut [u8; 64], v| unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) };
    let tables = OF_BYTES.map(|table| {
        let quarters = table.as_chunks().0;
        [load(&quarters[0]), load(&quarters[1]), load(&quarters[2]), load(&quarters[3])]
    });
    for at in Trits::offsets(bytes.len()) {
        let v = load(&bytes[at..].as_chunks().0[0]);
        let is_upper = _mm512_movepi8_mask(v);
        let [fours, fifths] = digits.places(at);
        let [four, fifth] = tables.map(|[a, b, c, d]| {
            let lower = _mm512_permutex2var_epi8(a, v, b);
            _mm512_mask_blend_epi8(is_upper, lower, _mm512_permutex2var_epi8(c, v, d))
        });
        store(fours, four);
        store(fifths, fifth);
    }
}

/// The operations that both have in common.
macro_rules! common {
    ($own:ident, $self:ident => $avx2:expr) => {
        type Bytes = __m256i;
        type Stored = [i8; 32];
        type Input = __m256i;
        type Products = __m256i;
        type Sums = __m256i;
        type Floats = __m256;

        #[inline(always)]
        fn stored(values: &[i8; 32]) -> [i8; 32] {
            *values
        }

        #[inline(always)]
        fn bytes(self, bytes: &[u8; 32]) -> __m256i {
            avx2!(_mm256_loadu_si256(bytes.as_ptr().cast()))
        }

        #[inline(always)]
        fn join(self, first: &[u8; 16], second: &[u8; 16]) -> __m256i {
            avx2!(_mm256_loadu2_m128i(second.as_ptr().cast(), first.as_ptr().cast()))
        }

        #[inline(always)]
        fn nibbles(self, bytes: &[u8; 16]) -> __m256i {
            avx2!({
                let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
                let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
                _mm256_and_si256(both, _mm256_set1_epi8(15))
            })
        }

        #[inline(always)]
        fn field<const SHIFT: u32, const MASK: u8>(self, v: __m256i) -> __m256i {
            avx2!({
                // A shift by a constant, after inlining.
                let shifted = match SHIFT {
                    0 => v,
                    1 => _mm256_srli_epi16::<1>(v),
                    2 => _mm256_srli_epi16::<2>(v),
                    3 => _mm256_srli_epi16::<3>(v),
                    4 => _mm256_srli_epi16::<4>(v),
                    5 => _mm256_srli_epi16::<5>(v),
                    6 => _mm256_srli_epi16::<6>(v),
                    _ => _mm256_srli_epi16::<7>(v),
                };
                _mm256_and_si256(shifted, _mm256_set1_epi8(MASK as i8))
            })
        }

        #[inline(always)]
        fn with_upper(self, a: __m256i, b: __m256i) -> __m256i {
            avx2!(_mm256_or_si256(a, _mm256_slli_epi16::<4>(b)))
        }

        #[inline(always)]
        fn even_and_odd(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
            avx2!({
                let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
                let even = _mm256_shuffle_ps::<0b_10_00_10_00>(a, b);
                let odd = _mm256_shuffle_ps::<0b_11_01_11_01>(a, b);
                [_mm256_castps_si256(even), _mm256_castps_si256(odd)]
            })
        }

        #[inline(always)]
        fn block_of_trits(self, fours: &[u8; 52], fifths: &[u8; 48], to: &mut [u8; 64]) {
            let (fours, fifths, to) = (fours.as_ptr(), fifths.as_ptr(), to.as_mut_ptr());
            avx2!({
                _mm256_storeu_si256(to.cast(), _mm256_loadu_si256(fours.cast()));
                let next = _mm_loadu_si128(fours.add(32).cast());
                let next = _mm256_set_m128i(_mm_srli_epi16::<4>(next), next);
                let next = _mm256_and_si256(next, _mm256_set1_epi8(15));
                let fields = _mm_setr_epi32(0x0303_0303, 0x3030_3030, 0x0c0c_0c0c, 0xc0c0_c0c0_u32 as i32);
                let last = _mm_set1_epi32(fours.add(48).cast::<i32>().read_unaligned());
                let last = _mm_sllv_epi32(_mm_and_si128(last, fields), _mm_setr_epi32(6, 2, 4, 0));
                let fifth = _mm_slli_epi16::<2>(_mm_loadu_si128(fifths.add(32).cast()));
                let others = _mm256_or_si256(next, _mm256_loadu_si256(fifths.cast()));
                let all = _mm256_or_si256(others, _mm256_set_m128i(last, fifth));
                _mm256_storeu_si256(to.add(32).cast(), all);
            })
        }

        #[inline(always)]
        fn input(self, stored: &[i8; 32]) -> __m256i {
            avx2!(_mm256_loadu_si256(stored.as_ptr().cast()))
        }

        #[inline(always)]
        fn no_products(self) -> __m256i {
            avx2!(_mm256_setzero_si256())
        }

        #[inline(always)]
        fn no_sums(self) -> __m256i {
            avx2!(_mm256_setzero_si256())
        }

        #[inline(always)]
        fn total_of_sums($self, sums: __m256i) -> i32 {
            $avx2.total_of(sums)
        }

        #[inline(always)]
        fn zeros(self) -> __m256 {
            avx2!(_mm256_setzero_ps())
        }

        #[inline(always)]
        fn floats(self, values: &[f32; 8]) -> __m256 {
            avx2!(_mm256_loadu_ps(values.as_ptr()))
        }

        #[inline(always)]
        fn all(self, value: f32) -> __m256 {
            avx2!(_mm256_set1_ps(value))
        }

        #[inline(always)]
        fn halves(self, [first, second]: [f32; 2]) -> __m256 {
            avx2!(_mm256_set_m128(_mm_set1_ps(second), _mm_set1_ps(first)))
        }

        #[inline(always)]
        fn all_f16(self, value: [u8; 2]) -> __m256 {
            avx2!(_mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(value))))
        }

        #[inline(always)]
        fn halves_of_f16(self, values: [[u8; 2]; 2]) -> __m256 {
            avx2!({
                let [first, second] = values.map(i16::from_le_bytes);
                _mm256_cvtph_ps(_mm_unpacklo_epi64(_mm_set1_epi16(first), _mm_set1_epi16(second)))
            })
        }

        #[inline(always)]
        fn alternating_f16(self, values: [[u8; 2]; 2]) -> __m256 {
            avx2!({
                let [first, second] = values.map(i16::from_le_bytes);
                let (first, second) = (_mm_set1_epi16(first), _mm_set1_epi16(second));
                _mm256_cvtph_ps(_mm_blend_epi16::<0b_1100_1100>(first, second))
            })
        }

        #[inline(always)]
        fn pairs_of_f16(self, values: [[u8; 2]; 4]) -> __m256 {
            let [a, b, c, d] = values.map(|value| u64::from(u16::from_le_bytes(value)));
            let all = (a | b << 16) | (c | d << 16) << 32;
            avx2!({
                let v = _mm_cvtsi64_si128(all as i64);
                _mm256_cvtph_ps(_mm_unpacklo_epi16(v, v))
            })
        }

        #[inline(always)]
        fn store(self, v: __m256, to: &mut [f32; 8]) {
            avx2!(_mm256_storeu_ps(to.as_mut_ptr(), v))
        }

        #[inline(always)]
        fn f16s(self, bytes: &[u8; 16]) -> __m256 {
            avx2!(_mm256_cvtph_ps(_mm_loadu_si128(bytes.as_ptr().cast())))
        }

        #[inline(always)]
        fn any_f16s(self, bytes: &[u8; 16]) -> __m256 {
            self.f16s(bytes)
        }

        #[inline(always)]
        fn bf16s(self, bytes: &[u8; 16]) -> __m256 {
            avx2!({
                let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(bytes.as_ptr().cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
            })
        }

        #[inline(always)]
        fn uppers(self, bytes: &[u8; 8]) -> __m256 {
            avx2!({
                // The sign fills the upper bits.
                let wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(bytes.as_ptr().cast()));
                let moved = _mm256_slli_epi32::<20>(wide);
                let kept = _mm256_and_si256(moved, _mm256_set1_epi32(FROM_UPPER as i32));
                _mm256_castsi256_ps(_mm256_or_si256(kept, _mm256_set1_epi32(MIDDLE as i32)))
            })
        }

        #[inline(always)]
        fn i8s(self, bytes: &[u8; 8]) -> __m256 {
            avx2!({
                let wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(bytes.as_ptr().cast()));
                _mm256_cvtepi32_ps(wide)
            })
        }

        #[inline(always)]
        fn add(self, a: __m256, b: __m256) -> __m256 {
            avx2!(_mm256_add_ps(a, b))
        }

        #[inline(always)]
        fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
            avx2!(_mm256_fmadd_ps(a, b, c))
        }

        #[inline(always)]
        fn total(self, v: __m256) -> f32 {
            avx2!({
                let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                let one = _mm_add_ss(two, _mm_shuffle_ps::<0b_01_01_01_01>(two, two));
                _mm_cvtss_f32(one)
            })
        }
    };
}

impl Simd for Avx2 {
    common!(Avx2, self => self);

    const SUMS_OF_TWO: usize = 1;
    const STREAMS_TWO: bool = false;

    const PLACES: [f32; 4] = [1.0; 4];

    #[inline(always)]
    fn planes(self, bytes: &[u8; 32], n: usize) -> __m256i {
        avx2!({
            let v = _mm256_loadu_si256(bytes.as_ptr().cast());
            let eight = match n {
                0 => _mm256_permute4x64_epi64::<0b_00_00_00_00>(v),
                1 => _mm256_permute4x64_epi64::<0b_01_01_01_01>(v),
                2 => _mm256_permute4x64_epi64::<0b_10_10_10_10>(v),
                _ => _mm256_permute4x64_epi64::<0b_11_11_11_11>(v),
            };
            let shifted = _mm256_srlv_epi64(eight, _mm256_setr_epi64x(0, 2, 4, 6));
            _mm256_and_si256(shifted, _mm256_set1_epi8(3))
        })
    }

    #[inline(always)]
    fn trits(self, bytes: &[u8], digits: &mut Trits) {
        for at in Trits::offsets(bytes.len()) {
            let [fours, fifths] = digits.places(at);
            let places = fours.as_chunks_mut().0.iter_mut().zip(fifths.as_chunks_mut().0);
            for (bytes, (fours, fifths)) in bytes[at..].as_chunks().0.iter().zip(places) {
                self.trits_of_32(bytes, fours, fifths);
            }
        }
    }

    #[inline(always)]
    fn both(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(_mm256_add_epi16(a, b))
    }

    /// Products are 16 sums of pairs.
    #[inline(always)]
    fn dot(self, sums: __m256i, codes: __m256i, q: __m256i) -> __m256i {
        avx2!(_mm256_add_epi16(sums, _mm256_maddubs_epi16(codes, q)))
    }

    #[inline(always)]
    fn add_products(self, sums: __m256i, products: __m256i) -> __m256i {
        avx2!(_mm256_add_epi32(sums, self.widened(products)))
    }

    #[inline(always)]
    fn add_scaled(self, to: __m256, products: __m256i, scale: f32) -> __m256 {
        self.add_scaled_sums(to, self.widened(products), self.all(scale))
    }

    #[inline(always)]
    fn products(self, products: __m256i) -> __m256 {
        avx2!(_mm256_cvtepi32_ps(self.widened(products)))
    }

    #[inline(always)]
    fn add_signed(self, to: __m256, weights: __m256i, q: __m256i, scale: f32) -> __m256 {
        // The first operand is unsigned, so the sign of a weight goes to its activation. Activations
        // are above -128, which has no opposite.
        let pairs =
            avx2!(_mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(q, weights)));
        self.add_scaled(to, pairs, scale)
    }
}

impl Simd for Avx512 {
    common!(Avx512, self => self.0);

    /// There are 32 registers.
    const SUMS_OF_TWO: usize = 4;
    const STREAMS_TWO: bool = false;

    /// The codes stay where they are in their bytes.
    const PLACES: [f32; 4] = [1.0, 1.0 / 4.0, 1.0 / 16.0, 1.0 / 64.0];

    #[inline(always)]
    fn planes(self, bytes: &[u8; 32], n: usize) -> __m256i {
        let eight = i64::from_le_bytes(bytes.as_chunks().0[n]);
        avx2!({
            let fields = _mm256_setr_epi64x(
                0x0303_0303_0303_0303,
                0x0c0c_0c0c_0c0c_0c0c,
                0x3030_3030_3030_3030,
                0xc0c0_c0c0_c0c0_c0c0_u64 as i64,
            );
            _mm256_and_si256(_mm256_set1_epi64x(eight), fields)
        })
    }

    #[inline(always)]
    fn trits(self, bytes: &[u8], digits: &mut Trits) {
        if is_x86_feature_detected!("avx512vbmi") {
            // SAFETY: the machine has the instructions, as was checked just now and by `run_avx512`.
            return unsafe { trits_vbmi(bytes, digits) };
        }
        self.0.trits(bytes, digits);
    }

    #[inline(always)]
    fn both(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(_mm256_add_epi32(a, b))
    }

    /// Products are eight sums of fours.
    #[inline(always)]
    fn dot(self, sums: __m256i, codes: __m256i, q: __m256i) -> __m256i {
        // SAFETY: a value of `Avx512` exists only where `run_avx512` found the instructions.
        unsafe { _mm256_dpbusd_epi32(sums, codes, q) }
    }

    #[inline(always)]
    fn add_products(self, sums: __m256i, products: __m256i) -> __m256i {
        avx2!(_mm256_add_epi32(sums, products))
    }

    #[inline(always)]
    fn add_scaled(self, to: __m256, products: __m256i, scale: f32) -> __m256 {
        self.0.add_scaled_sums(to, products, self.all(scale))
    }

    #[inline(always)]
    fn products(self, products: __m256i) -> __m256 {
        avx2!(_mm256_cvtepi32_ps(products))
    }

    #[inline(always)]
    fn add_signed(self, to: __m256, weights: __m256i, q: __m256i, scale: f32) -> __m256 {
        let (size, signed) = avx2!((_mm256_abs_epi8(weights), _mm256_sign_epi8(q, weights)));
        self.add_scaled(to, self.dot(self.no_products(), size, signed), scale)
    }
}
