//! The rate at which the CPU reads the weights.

use web_time::Instant;

use super::machine::{InstructionSet, Run, Simd};
use super::pool::{Pool, each};

/// Bytes that a thread reads at a time.
const PART: usize = 1 << 18;

/// How often everything is read. The fastest time counts.
const RUNS: usize = 5;

/// The rate in GB/s at which all threads together read `all`.
pub(super) fn measure(pool: &dyn Pool, set: InstructionSet, all: &[&[u8]]) -> Option<f64> {
    let mut parts: Vec<(&[u8], u64)> =
        all.iter().flat_map(|bytes| bytes.chunks(PART)).map(|part| (part, 0)).collect();
    let bytes: usize = all.iter().map(|bytes| bytes.len()).sum();
    let mut fastest = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        each(pool, &mut parts, |_, (part, sum)| *sum = set.run(Read(part)));
        std::hint::black_box(&parts);
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (fastest > 0.0).then(|| bytes as f64 / 1e9 / fastest)
}

/// Reads all bytes.
struct Read<'a>(&'a [u8]);

impl Run for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> u64 {
        let mut sums = [0; 16];
        for chunk in self.0.as_chunks::<128>().0 {
            for (sum, word) in sums.iter_mut().zip(chunk.as_chunks().0) {
                *sum ^= u64::from_le_bytes(*word);
            }
        }
        sums.iter().fold(0, |all, sum| all ^ sum)
    }
}
