//! Instruction sets and threads, which differ from machine to machine. All of the crate's `unsafe`
//! code for the CPU is in this folder.
//!
//! [`Simd`] has the operations that kernels need, on vectors of 32 bytes. Kernels are written once,
//! for any [`Simd`]. [`InstructionSet::run`] compiles one for each instruction set and calls the
//! right one.

#![allow(unsafe_code, reason = "instructions that not every machine has, and work for threads")]

#[cfg(any(not(target_arch = "wasm32"), feature = "threads"))]
mod bell;
#[cfg(any(not(target_arch = "wasm32"), feature = "threads"))]
mod jobs;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
mod page;
mod scalar;
mod simd;
#[cfg(not(target_arch = "wasm32"))]
mod threads;
#[cfg(target_arch = "wasm32")]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub use page::{PageThreads, fail, serve};
pub(crate) use simd::{Run, Simd, approximate, f16, unroll};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use threads::Threads;

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(target_arch = "wasm32", feature = "relaxed-simd"))]
    RelaxedSimd,
    #[cfg(target_arch = "wasm32")]
    Simd128,
    Scalar,
}

impl InstructionSet {
    /// Plain Rust, with which the others are compared.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// WebAssembly's SIMD of a fixed width, without relaxed instructions.
    #[cfg(all(target_arch = "wasm32", feature = "threads"))]
    pub(crate) const SIMD128: Self = Self(Set::Simd128);

    /// Those of this machine, the fastest first. The last one is [`InstructionSet::SCALAR`].
    pub fn available() -> Vec<Self> {
        let sets = [
            #[cfg(target_arch = "x86_64")]
            x86::has_avx512().then_some(Set::Avx512),
            #[cfg(target_arch = "x86_64")]
            x86::has_avx2().then_some(Set::Avx2),
            #[cfg(all(target_arch = "wasm32", feature = "relaxed-simd"))]
            Some(Set::RelaxedSimd),
            #[cfg(target_arch = "wasm32")]
            Some(Set::Simd128),
            Some(Set::Scalar),
        ];
        sets.into_iter().flatten().map(Self).collect()
    }

    /// The first of `sets` that is `right`; plain Rust if none is.
    pub(crate) fn first_of(sets: &[Self], right: impl Fn(Self) -> bool) -> Self {
        sets.iter().copied().find(|&set| right(set)).unwrap_or(Self::SCALAR)
    }

    /// The name for people, and for `--instructions`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(all(target_arch = "wasm32", feature = "relaxed-simd"))]
            Set::RelaxedSimd => "relaxed-simd",
            #[cfg(target_arch = "wasm32")]
            Set::Simd128 => "simd128",
            Set::Scalar => "scalar",
        }
    }

    /// Runs `work` with these instructions.
    pub(crate) fn run<R: Run>(self, work: R) -> R::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => x86::run_avx512(work),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => x86::run_avx2(work),
            #[cfg(all(target_arch = "wasm32", feature = "relaxed-simd"))]
            Set::RelaxedSimd => wasm::run_relaxed(work),
            #[cfg(target_arch = "wasm32")]
            Set::Simd128 => wasm::run_simd128(work),
            Set::Scalar => work.run(scalar::Scalar),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_set_is_wrong_the_next_one_is_taken() {
        let sets = InstructionSet::available();
        for (n, set) in sets.iter().enumerate() {
            let right = |set| sets[n..].contains(&set);
            assert_eq!(InstructionSet::first_of(&sets, right), *set);
        }
        assert_eq!(InstructionSet::first_of(&sets, |_| false), InstructionSet::SCALAR);
    }

    /// Eight f16 as f32: as numbers, and as what may be none.
    struct Floats([u8; 16]);

    impl Run for Floats {
        type Output = [[f32; 8]; 2];

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> [[f32; 8]; 2] {
            let mut floats = [[0.0; 8]; 2];
            s.store(s.f16s(&self.0), &mut floats[0]);
            s.store(s.any_f16s(&self.0), &mut floats[1]);
            floats
        }
    }

    #[test]
    fn every_f16_is_right() {
        for set in InstructionSet::available() {
            for first in (0..=u16::MAX).step_by(8) {
                let halves: [half::f16; 8] =
                    std::array::from_fn(|i| half::f16::from_bits(first + i as u16));
                let mut bytes = [0; 16];
                bytes
                    .as_chunks_mut()
                    .0
                    .iter_mut()
                    .zip(halves)
                    .for_each(|(b, h)| *b = h.to_le_bytes());
                let [numbers, any] = set.run(Floats(bytes));
                for (i, half) in halves.into_iter().enumerate() {
                    let is_equal = |x: f32| x == half.to_f32() || x.is_nan() && half.is_nan();
                    assert!(is_equal(any[i]), "{half:?} with {}", set.name());
                    assert!(
                        !half.is_finite() || is_equal(numbers[i]),
                        "{half:?} with {}",
                        set.name()
                    );
                }
            }
        }
    }
}
