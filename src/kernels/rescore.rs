//! The greedy token from half the head's bytes, and why it is the one that all of them give.
//!
//! `split_f16` parts each f16 `e` of the embedding into two bytes, once, where it lies: nothing is
//! lost, and no memory is taken but 4 bytes a row. A greedy token then takes
//!
//! 1. `gemv_upper`: approximate logits `A` of all rows from the upper bytes `a` alone, which say `e` to
//!    within a sixteenth;
//! 2. [`rescore`]: of rows that could have the greatest logit, the logit `F` that `gemv_head` would
//!    compute, operation by operation, from both bytes; and the best of those.
//!
//! # Which rows could
//!
//! Let `x` be the hidden state, of `K` values; for a row, `d = e - a`, what the upper bytes leave out;
//! `u = 2⁻²⁴`, the most that one f32 operation rounds by; `|v|` the Euclidean norm. Without rounding,
//!
//! > `|Σ eᵢxᵢ - Σ aᵢxᵢ| = |Σ dᵢxᵢ| ≤ |d| |x|` (Cauchy and Schwarz).
//!
//! `F` and `A` are f32 sums of `K` products. Each product is rounded at most once, and passes through
//! fewer than `K` additions (`K ≥ 128` values over at most 32 lanes), so in whatever order they are
//! added and whether or not drivers fuse products with additions, with `γ = Ku / (1 - Ku)`,
//!
//! > `|F - Σ eᵢxᵢ| ≤ γ Σ|eᵢxᵢ| ≤ γ |e| |x|`, and `|A - Σ aᵢxᵢ| ≤ γ |a| |x| ≤ γ (|e| + |d|) |x|`
//!
//! (N. Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Together `|F - A| ≤ B` with
//!
//! > `B = (|d| + γ (2|e| + |d|)) |x|`.
//!
//! The row with the greatest `F` has `F ≥ A' - B'` of every other row, so that `A + B ≥ A' - B'`: rows
//! for which that is false, for any one other, are ruled out. Others are taken from the leads, the
//! greatest `A` of each workgroup of `gemv_upper`, since `B` is much the same in all rows. Rows with
//! equal `F` are none of them ruled out, and the lowest id wins, as in `sample_best`.
//!
//! # What is rounded in deciding
//!
//! `split_f16` stores `error = (|d| + g (2|e| + 2|d|)) · 1.002` with `g = (K + 16) u`, and here
//! `norm = (|x| + 2⁻⁵⁶) · 1.002`.
//!
//! - `g` is more than `γ + 8u`, for `K` up to 7680. The spare `8u (2|e| + 2|d|) |x|` of a row is more than
//!   what the two operations of its `A ± error · norm` round by: each at most `u` of its result, which is
//!   at most `(|e| + 2|d|) |x|` but for a part in a hundred.
//! - The norms are square roots of f32 sums of squares: short by no more than `(K + 8) u` of
//!   themselves, which 0.002 exceeds.
//! - Squares of values below `2⁻⁶³` may underflow, and be taken for 0. All such values of `x` together
//!   have a norm below `2⁻⁶³ √K < 2⁻⁵⁶`. The values of `e` and `d` are multiples of `2⁻²⁴`, and too large
//!   for that. Products and sums in `F` and `A` may underflow too, by which they are off by less than
//!   `4K · 2⁻¹²⁶`; but `error` is never below `2⁻³²`, and `error · 2⁻⁵⁶` covers that.
//! - Beyond a norm of `10³⁰` sums could overflow. Then no row is ruled out; nor is one whose bound is
//!   not a number.
//!
//! Values of 2 and more, of which the upper byte says nothing of use, make `|d|` as large as `|e|`: such
//! rows are hardly ever ruled out. In the worst case no row is; half as many bytes again are read then
//! as by the f16 head, and the answer is the same.
//!
//! # How many they are
//!
//! `|d|` is 0.026 of `|e|`. Of the bundled model's 4096 rows 2 are candidates in the median of 393 of its
//! own hidden states, and 72 at most. Of a Gaussian embedding of 128 256 rows of 2560 values, where no
//! token stands out, about 5 000 are, to read 26 MB beside the 328 MB of upper bytes.
//!
//! What else was tried on the same states: rows of int8 with a scale have `|d|` at 0.014 or 0.008 of
//! `|e|`, and 1 or 23 candidates, but lie in memory beside the f16, half as much again. The upper half of
//! an f16 as it is has two bits of mantissa, `|d|` at 0.053 of `|e|`, and five candidates, or five rows of
//! six. Norms of 8 or 10 parts of a row rule out hardly more rows than one does.

use super::{Dense, DenseType, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Used};
use crate::lanes_variants;

/// Tokens one workgroup looks at.
const STRETCH: usize = 256;

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
    example: &consts(32, 2560, 2004, 0, 1000, 0),
};

const fn consts(
    lanes: u32,
    k: usize,
    n_leads: usize,
    first_row: usize,
    rows: usize,
    first_stretch: usize,
) -> [Const; 8] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("STRETCH", STRETCH as u32),
        Const::U32("K", k as u32),
        Const::U32("N_LEADS", n_leads as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("FIRST_STRETCH", first_stretch as u32),
    ]
}

/// The stretches of the rows of `embd`, each with its best token.
pub fn rescored_stretches(embd: &Dense) -> usize {
    embd.shards.iter().map(|shard| shard.rows.len().div_ceil(STRETCH)).sum()
}

/// `best` `[rescored_stretches()]` = the best of each stretch of the logits `embd x`, from `approx`
/// and `leads` of `gemv_upper` and `error` of `split_f16`; one dispatch for each shard.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn rescore(
    recorder: &mut Recorder,
    plan: &mut Plan,
    embd: &Dense,
    x: &Buffer<f32>,
    error: &Buffer<f32>,
    approx: &Buffer<f32>,
    leads: &Buffer<[f32; 2]>,
    best: &Buffer<[u32; 2]>,
) {
    debug_assert_eq!(embd.ty, DenseType::F16Split);
    let lanes = recorder.gpu().lanes_per_row();
    let mut first_stretch = 0;
    for shard in &embd.shards {
        let rows = shard.rows.len();
        // How many rows it looks at depends on the hidden state; one there is always.
        let one = Used::Fixed((embd.k * embd.ty.bytes() / embd.shards.len()) as u64);
        let some = shard.buffer.clone().using(one);
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(lanes, embd.k, leads.len(), shard.rows.start, rows, first_stretch),
            &[&some, x, error, approx, leads, best],
            [Extent::Fixed(rows.div_ceil(STRETCH) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
        first_stretch += rows.div_ceil(STRETCH);
    }
}
