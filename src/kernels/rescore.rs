//! The greedy token from half of the LM head's bytes, and why it is the same as from all of them.
//!
//! `split_f16` splits each f16 `e` of the embedding into two bytes, once and in place: nothing is
//! lost, and it takes no memory but 4 bytes a row. A greedy token then takes two kernels:
//!
//! 1. `gemv_upper` computes approximate logits `A` of all rows from the upper bytes `a` alone,
//!    which give `e` to within a sixteenth.
//! 2. `rescore` takes the rows that could have the greatest logit. From both bytes it computes the
//!    logit `F` that `gemv_lm_head` would compute, operation by operation; the best of these is the
//!    token.
//!
//! # Which rows could
//!
//! Let `x` be the hidden state, of `K` values. For a row, let `d = e - a` be what the upper bytes
//! leave out. Let `u = 2⁻²⁴`, the most that one f32 operation rounds by, and `|v|` the Euclidean
//! norm. Without rounding,
//!
//! > `|Σ eᵢxᵢ - Σ aᵢxᵢ| = |Σ dᵢxᵢ| ≤ |d| |x|` (Cauchy and Schwarz).
//!
//! `F` and `A` are f32 sums of `K` products. Each product is rounded at most once, and goes through
//! fewer than `K` additions (`K ≥ 128` values over at most 32 lanes). So in any order of additions,
//! and whether or not drivers fuse products with additions, with `γ = Ku / (1 - Ku)`,
//!
//! > `|F - Σ eᵢxᵢ| ≤ γ Σ|eᵢxᵢ| ≤ γ |e| |x|`, and `|A - Σ aᵢxᵢ| ≤ γ |a| |x| ≤ γ (|e| + |d|) |x|`
//!
//! (N. Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Together `|F - A| ≤ B` with
//!
//! > `B = (|d| + γ (2|e| + |d|)) |x|`.
//!
//! The row with the greatest `F` has `F ≥ A' - B'` of every other row, so that `A + B ≥ A' - B'`. A
//! row for which this is false, with any other row, is ruled out. The other rows are the leads:
//! those with the greatest `A` of each workgroup of `gemv_upper`, since `B` is much the same in all
//! rows. Of rows with equal `F` none is ruled out, and the lowest id wins, as in `sample_best`.
//!
//! # What is rounded in deciding
//!
//! `split_f16` stores `error = (|d| + g (2|e| + 2|d|)) · 1.002` with `g = (K + 16) u`, and here
//! `norm = (|x| + 2⁻⁵⁶) · 1.002`.
//!
//! - `g` is more than `γ + 8u`, for `K` up to 7680. The spare `8u (2|e| + 2|d|) |x|` of a row
//!   covers the rounding of the two operations in its `A ± error · norm`: each rounds by at most
//!   `u` of its result, which is at most `(|e| + 2|d|) |x|`, give or take a hundredth.
//! - The norms are square roots of f32 sums of squares. They are short by at most `(K + 8) u` of
//!   themselves, less than 0.002.
//! - Squares of values below `2⁻⁶³` may underflow to 0. All such values of `x` together have a norm
//!   below `2⁻⁶³ √K < 2⁻⁵⁶`. The values of `e` and `d` are multiples of `2⁻²⁴`, too large for that.
//!   Products and sums in `F` and `A` may underflow too, which puts them off by less than `4K ·
//!   2⁻¹²⁶`; but `error` is never below `2⁻³²`, and `error · 2⁻⁵⁶` covers that.
//! - Beyond a norm of `10³⁰` sums could overflow. Then no row is ruled out. Nor is a row whose
//!   bound is not a number.
//!
//! The upper byte says nothing useful of values of 2 and more: they make `|d|` as large as `|e|`,
//! and their rows are hardly ever ruled out. In the worst case no row is. That reads half as many
//! bytes again as the f16 LM head, and the answer is the same.
//!
//! # How many there are
//!
//! `|d|` is 0.026 of `|e|`. Of the bundled model's 4096 rows, 2 are candidates in the median of 393
//! of its own hidden states, and 72 at most. Of a Gaussian embedding of 128 256 rows of 2560
//! values, where no token stands out, about 5 000 are: 26 MB to read beside the 328 MB of upper
//! bytes.
//!
//! Other ways that were tried on the same states: rows of int8 with a scale have `|d|` at 0.014 or
//! 0.008 of `|e|`, and 1 or 23 candidates, but need memory beside the f16, half as much again. The
//! upper half of an f16 as it is has two bits of mantissa, `|d|` at 0.053 of `|e|`, and five
//! candidates, or five rows of six. Separate norms for 8 or 10 slices of a row rule out hardly more
//! rows than one norm does.

use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts, workgroups};
use super::{Approximation, Dense, DenseType, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Used};
use crate::lanes_variants;

/// Rows whose best token one workgroup finds.
const VOCAB_BLOCK: usize = 256;

/// A factor above any rounding of a sum of squares.
pub(super) const SLACK: f32 = 1.002;

/// `2⁻⁵⁶`, above the norm of all values whose squares underflow.
pub const MIN_NORM: f32 = 1.0 / (1u64 << 56) as f32;

/// The norm of the hidden state beyond which a logit might overflow.
const MAX_NORM: f32 = 1e30;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rescore",
    bindings: &[
        ("embd", Access::Read),
        ("x", Access::Read),
        ("error", Access::Read),
        ("approx", Access::Read),
        ("leads", Access::Read),
        ("best", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/split_f16",
        "shared/f16_products",
        "shared/split_row",
        "shared/best",
        "rescore"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        [dense_consts(&rows, DenseType::F16Split, 0), consts(32, 2004)].concat()
    },
};

/// The rows that a workgroup computes again at a time.
fn row_groups(lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes, each: 1 }
}

fn consts(lanes: u32, n_leads: usize) -> Vec<Const> {
    let own = [
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_LEADS", n_leads),
        Const::F32("SLACK", SLACK),
        Const::F32("MIN_NORM", MIN_NORM),
        Const::F32("MAX_NORM", MAX_NORM),
    ];
    [row_groups(lanes).consts(), own.into()].concat()
}

/// The vocabulary blocks of [`Recorder::rescore`], each with its best token. No block is in two
/// shards.
pub fn rescored_blocks(embd: &Dense) -> usize {
    workgroups(embd, VOCAB_BLOCK)
}

impl Recorder<'_> {
    /// `best` `[rescored_blocks()]` = for each vocabulary block the best of the logits `embd x`, by
    /// way of the approximate ones.
    pub fn rescore(
        &mut self,
        embd: &Dense,
        x: &Buffer<f32>,
        approximation: &Approximation,
        best: &Buffer<[u32; 2]>,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let Approximation { error, approx, leads } = approximation;
        // The number of rows that it reads depends on the hidden state. It reads at least one.
        let one = Used::Fixed((embd.k * embd.ty.bytes() / embd.shards.len()) as u64);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            rows_per_workgroup: VOCAB_BLOCK,
            consts: consts(self.tuning().lanes, leads.len()),
            buffers: &[x, error, approx, leads, best],
        }
        .record_using(self, |shard| shard.buffer.clone().using(one));
    }
}
