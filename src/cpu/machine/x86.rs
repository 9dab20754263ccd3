//! The operations with AVX2, and the dot products with AVX-512 VNNI.
//!
//! Both work on vectors of 256 bits, so AVX-512 differs only in its products: one instruction instead
//! of two or three, with sums of 32 bits.

use std::arch::x86_64::*;

use super::simd::{FROM_UPPER, MIDDLE, Run, Simd};

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
        fn triple(self, v: __m256i) -> __m256i {
            avx2!(_mm256_add_epi8(v, _mm256_add_epi8(v, v)))
        }

        #[inline(always)]
        fn centred(self, v: __m256i) -> __m256i {
            avx2!(_mm256_xor_si256(v, _mm256_set1_epi8(-128)))
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
        fn halves_of_f16(self, halves: [[u8; 2]; 2]) -> __m256 {
            avx2!({
                let [first, second] = halves.map(|half| _mm_set1_epi16(i16::from_le_bytes(half)));
                _mm256_cvtph_ps(_mm_unpacklo_epi64(first, second))
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

    #[inline(always)]
    fn digit(self, v: __m256i) -> __m256i {
        // 85 and 170, centred. A comparison gives -1.
        avx2!({
            let first = _mm256_cmpgt_epi8(v, _mm256_set1_epi8(-43));
            let second = _mm256_cmpgt_epi8(v, _mm256_set1_epi8(42));
            _mm256_abs_epi8(_mm256_add_epi8(first, second))
        })
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

    #[inline(always)]
    fn digit(self, v: __m256i) -> __m256i {
        // SAFETY: a value of `Avx512` exists only where `run_avx512` found the instructions.
        unsafe {
            let one = _mm256_set1_epi8(1);
            let first = _mm256_cmpgt_epi8_mask(v, _mm256_set1_epi8(-43));
            let second = _mm256_cmpgt_epi8_mask(v, _mm256_set1_epi8(42));
            let digit = _mm256_maskz_mov_epi8(first, one);
            _mm256_mask_add_epi8(digit, second, digit, one)
        }
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
