//! Finds the greedy token, or the one that the temperature alone draws, from half of the LM head's
//! bytes. This comment proves that all of the bytes would give the same token.
//!
//! `split_f16` splits each f16 `e` of the embedding into two bytes, once and in place. Nothing is
//! lost, and each row takes 8 more bytes of memory. A greedy token then takes two kernels:
//!
//! 1. `gemv_upper` computes an approximate logit `A` for every row. It reads the upper bytes alone.
//!    They give the value `a`, which is within a sixteenth of `e`, unless `e` is smaller than the
//!    largest value of its row by a factor of about 2¹⁵.
//! 2. `rescore` takes the rows that could have the greatest logit, the candidates. It reads both
//!    bytes and computes the logit `F` with the same operations as `gemv_lm_head`. The greatest `F`
//!    gives the token.
//!
//! # Which rows are candidates
//!
//! Let `x` be the hidden state, with `K` values. For a row, let `d = e - a` be the error of the
//! upper bytes. Let `u = 2⁻²⁴` be the largest relative rounding error of one f32 operation. Let
//! `|v|` be the Euclidean norm. Without rounding,
//!
//! > `|Σ eᵢxᵢ - Σ aᵢxᵢ| = |Σ dᵢxᵢ| ≤ |d| |x|` (Cauchy and Schwarz).
//!
//! `F` and `A` are f32 sums of `K` products. Each product is rounded at most once. It goes through
//! fewer than `K` additions, because `K ≥ 128` values are spread over at most 32 lanes. Drivers may
//! add in any order, and may fuse products with additions. In every case, with
//! `γ = Ku / (1 - Ku)`,
//!
//! > `|F - Σ eᵢxᵢ| ≤ γ Σ|eᵢxᵢ| ≤ γ |e| |x|`, and `|A - Σ aᵢxᵢ| ≤ γ |a| |x| ≤ γ (|e| + |d|) |x|`
//!
//! (N. Higham, Accuracy and Stability of Numerical Algorithms, 3.1). So `|F - A| ≤ B` with
//!
//! > `B = (|d| + γ (2|e| + |d|)) |x|`.
//!
//! Let `A'` and `B'` belong to any other row. The row with the greatest `F` has `F ≥ A' - B'`, so
//! it has `A + B ≥ A' - B'`. A row that fails this test against some other row is ruled out. Each
//! row is tested against the leads only: the row with the greatest `A` in each workgroup of
//! `gemv_upper`. Choosing them by `A` is enough, because `B` is much the same in all rows. If
//! several rows share the greatest `F`, none of them is ruled out. The lowest id wins, as in
//! `sample_best`.
//!
//! # Rounding errors of the test itself
//!
//! `split_f16` stores `error = (|d| + g (2|e| + 2|d|)) · 1.002` with `g = (K + 16) u`. This kernel
//! computes `norm = (|x| + 2⁻⁵⁶) · 1.002`. The test uses `error · norm` as `B`. It is large enough:
//!
//! - For `K` up to 7680, `g` is more than `γ + 8u`. That leaves `8u (2|e| + 2|d|) |x|` to spare. It
//!   covers the rounding of the two operations in `A ± error · norm`. Each rounds by at most `u`
//!   times its result, and the result is at most `(|e| + 2|d|) |x|`, give or take a hundredth.
//! - The norms are square roots of f32 sums of squares. They are too small by at most the
//!   share `(K + 8) u`, which is less than 0.002.
//! - Squares of values below `2⁻⁶³` may underflow to 0. All such values of `x` together have a norm
//!   below `2⁻⁶³ √K < 2⁻⁵⁶`. The values of `e` and `d` are multiples of `2⁻²⁴`, so their squares do
//!   not underflow.
//! - Products and sums in `F` and `A` may underflow too. That changes them by less than
//!   `4K · 2⁻¹²⁶`. `error` is never below `2⁻³²`, so `error · 2⁻⁵⁶` covers it.
//! - If the norm of `x` is above `10³⁰`, sums could overflow, and no row is ruled out. A row whose
//!   bound is NaN is not ruled out either.
//!
//! The upper bytes of a row with values of 2 and more give `a / 2ˢ`, where `s` is the row's shift,
//! up to 15. `gemv_upper` multiplies their sum by `2ˢ`. This is exact except for underflow, which
//! the factor makes larger, by less than `4K · 2⁻¹¹¹`. The bound for underflow covers that too.
//!
//! In an extreme row, most values are smaller than the largest by more than 2²⁵. There `|d|` may be
//! as large as `|e|`, and such a row is hardly ever ruled out. If no row is, this reads half as
//! many bytes again as the f16 LM head, and still finds the same token.
//!
//! # Tokens that are drawn
//!
//! A token drawn by the temperature `T` alone is the one with the greatest `F / T + g`, where the
//! noise `g` depends on the token, not on its logit. So the same search finds it, with ranks
//! `A / T + g` and bounds `B / T`. One operation computes a rank from `A`, `1 / T` and `g`. It
//! rounds by at most `u (|A| / T + |g|)`, and by as much for `F`. The spare part of `B / T` covers
//! the first terms. The noise is below 18, and two kernels may compute it with logarithms that
//! differ in the last bits. `NOISE_ERROR` is twenty times the sum of both errors.
//!
//! # Biases and penalties
//!
//! A token's logit may get a bias `b`, then a factor `r` by its sign, and lose `p`, the frequency
//! penalty times a count, and `q`, the presence penalty. Between the two kernels, `penalize_upper`
//! does that to all approximate logits, and this one to the logits of the candidates. Without
//! rounding, the distance of two logits grows by at most `S`, the larger of the repeat penalty and
//! its inverse, because the factor changes at a logit of 0. So the bound is `S B`, or `S B / T` for
//! a token that is drawn.
//!
//! Rounding changes each of the two results by at most `u (4 S (|v| + |b|) + 3 |p| + |q|)`, where
//! `v` is the logit. The operations are one addition before the factor, the product, and two
//! subtractions. The test and the rank round results of at most `S (|v| + |b|) + |p| + |q|`, twice
//! each. The terms with `|v|` add up to `14u S |v|`. The spare part of `S B`, which is
//! `16u S (|e| + |d|) |x|`, covers them. The rest is less than `16u (S |b| + |p| + |q|)`. The test
//! adds that to the bound. It takes the greatest bias that is allowed, and the penalty for a token
//! that is the whole sequence.
//!
//! # Masks
//!
//! `penalize_upper` gives a token that the mask forbids the bias -inf. So its rank by the upper
//! bytes is -inf, and its rank by all bytes is -inf too, for any logit: the bias is added first,
//! and no factor or penalty makes more of it. Such a rank never exceeds a number. It is below every
//! number that a lead's lower end can be, so the row is ruled out. If its bound is NaN, the row is
//! computed and does not win. If a whole block is forbidden, its lead is -inf and rules out
//! nothing. For the tokens that the mask allows, nothing changes, because their bounds do not
//! depend on other rows. So the token is the one that all bytes would give among the allowed ones.
//!
//! # How many candidates there are
//!
//! `|d|` is 0.026 of `|e|`. For 393 hidden states of the bundled model, the median is 2 candidates
//! of 4096 rows, and the maximum is 72. In a Gaussian embedding of 128 256 rows of 2560 values, no
//! token stands out, and about 5 000 rows are candidates. They take 26 MB of reading beside the 328
//! MB of upper bytes.
//!
//! Other ways were tried on the same two embeddings, the bundled model's and the Gaussian one:
//!
//! - Rows of int8, each with a scale. `|d|` is 0.014 of `|e|` in the bundled model and 0.008 in the
//!   Gaussian embedding, which leaves 1 candidate and 23. But the int8 rows lie in memory beside
//!   the f16, which takes half as much again.
//! - The upper half of each f16 as it is. It has two bits of mantissa, so `|d|` is 0.053 of `|e|`.
//!   That leaves 5 candidates in the bundled model, but five rows of six in the Gaussian embedding.
//! - A norm for each of 8 or 10 slices of a row. They rule out hardly more rows than one norm.

use super::gemv_upper::Approximation;
use super::penalize::Penalties;
use super::penalize::{IN_PROMPT, growth};
use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts, shard_consts, workgroups};
use super::selection::SamplingParams;
use super::weight::{Dense, DenseType};
use super::workgroups::WORKGROUP;
use crate::compute::{MAX_NORM, MIN_NORM, SLACK};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Used};
use crate::lanes_variants;
use crate::sampling::{MAX_BIAS, Sampling};

/// The rows that one workgroup searches for the best token.
pub(super) const VOCAB_BLOCK: usize = 256;

/// The error of the noise, which the bound of a drawn token's rank includes.
const NOISE_ERROR: f32 = 1e-4;

/// `16u`: the greatest rounding error of biases and penalties, as a share of the largest of them.
const ROUNDING: f32 = 1.0 / (1u32 << 20) as f32;

/// With a larger [`growth`], logits could overflow, and hardly any row would be ruled out.
const MAX_GROWTH: f32 = 16.0;

/// The most shards of one dispatch. It has bindings for so many.
pub(super) const TOGETHER: usize = 2;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rescore",
    bindings: &[
        ("embd", Access::Read),
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("error", Access::Read),
        ("approx", Access::Read),
        ("leads", Access::Read),
        ("best", Access::Write),
        ("penalties", Access::Uniform),
        ("embd_1", Access::Read),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/step",
        "shared/sampling",
        "shared/noise",
        "shared/penalties",
        "shared/split_f16",
        "shared/f16_products",
        "shared/split_row",
        "shared/best",
        "shared/shards",
        "shared/candidates",
        "shared/upper_ends",
        "rescore"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let shards = shard_consts(&[0..600, 600..1000]);
        [dense_consts(&rows, DenseType::F16Split, 0), shards, consts(32, 2004, true)].concat()
    },
};

/// The rows that a workgroup rescores at a time.
pub(super) fn row_groups(lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes, each: 1 }
}

fn consts(lanes: u32, n_leads: usize, adjusted: bool) -> Vec<Const> {
    let own = [
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_LEADS", n_leads),
        Const::F32("SLACK", SLACK),
        Const::F32("MIN_NORM", MIN_NORM),
        Const::F32("MAX_NORM", MAX_NORM),
        Const::F32("NOISE_ERROR", NOISE_ERROR),
        Const::Bool("ADJUSTED", adjusted),
        Const::F32("MAX_BIAS", MAX_BIAS),
        Const::F32("ROUNDING", ROUNDING),
        Const::U32("IN_PROMPT", IN_PROMPT),
    ];
    [row_groups(lanes).consts(), own.into()].concat()
}

/// Whether half of the LM head's bytes may suffice with these penalties.
pub fn adjusts_little(sampling: &Sampling) -> bool {
    growth(sampling) <= MAX_GROWTH
}

/// The number of vocabulary blocks of [`Recorder::rescore`]. No block is in two shards.
pub fn rescored_blocks(embd: &Dense) -> usize {
    workgroups(&embd.shards, VOCAB_BLOCK)
}

impl Recorder<'_> {
    /// Finds the best rank of `embd x` in each vocabulary block, by way of the approximate ranks.
    /// `best` is `[rescored_blocks()]`: the bits of the rank, and its id. `penalties` are used if
    /// the approximation is adjusted.
    pub fn rescore(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        penalties: &Buffer<Penalties>,
        embd: &Dense,
        x: &Buffer<f32>,
        approximation: &Approximation,
        best: &Buffer<[u32; 2]>,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let Approximation { error, approx, leads, adjusted } = approximation;
        // How many rows are read depends on the hidden state. It is at least one.
        let one = Used::Fixed((embd.k * embd.ty.bytes() / embd.shards.len()) as u64);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: TOGETHER,
            rows_per_workgroup: VOCAB_BLOCK,
            consts: consts(self.tuning().lanes, leads.len(), *adjusted),
            buffers: &[sampling, &embd.shifts, x, error, approx, leads, best, penalties],
        }
        .record_using(self, |_| one);
    }
}
