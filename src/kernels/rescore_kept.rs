//! Finds the logits that decide a draw with top-k or min-p from half of the LM head's bytes. This
//! comment proves that all of the bytes would give the same token.
//!
//! `gemv_upper` computes an approximate logit `A` for every row, which is within a bound `B` of the
//! logit `F`: `rescore` proves that. So `F` is between the row's lower end `A - B` and its upper end
//! `A + B`. This kernel rules out the rows whose upper ends are below a limit. It computes `F` of the
//! others as `gemv_lm_head` does. `sample_bins`, `sample_sift` and `sample_decide` then choose among
//! those as among all.
//!
//! The limit is the greater of two. Both come from the leads, each of which is another row.
//!
//! # Top-k
//!
//! Let `L` be the lower end number `k` among those of the leads. So `k` rows have an `F` of `L` and
//! more, and the logit number `k` of all is at least `L`. It is in the bin `b` of `selection.rs`. Every
//! row with an `F` that is a bin's width or more below `L` is in a bin after `b`. The limit is
//! somewhat more than a bin's width below `L`. So all tokens of bin `b` and those before it are there,
//! with their logits. No count, no weight and no list that top-k and top-p use has any other token:
//!
//! - `sample_sift` adds up bins from the first on, and `b` is where the count reaches `k`. Top-p keeps
//!   some of the tokens that top-k accepts, so it ends in bin `b` or before.
//! - `sample_decide` gets the tokens of bin `b` and of those in which top-p may end.
//!
//! If `b` is the last bin, then top-k accepts all tokens before it, and they are there too.
//!
//! `k` leads with lower ends that are not below `L` are counted by the keys of these ends, which sort as
//! the values do. Only the upper bits of `L` are found. The rest is taken as 0, which lowers it.
//! `BIN_AND_MORE` and `ROUNDING` cover rounding. A distance in bins is the rounded product of a rounded
//! difference: below 1023 bins it is off by less than 0.0002 bins, and beyond that the last bin has the
//! token. The limit itself is off by less than `2u` times `|L|` and 0.001 bins.
//!
//! # Min-p
//!
//! If top-p keeps all, no token's weight matters. A token below min-p's limit comes after all that min-p
//! keeps. So top-k accepts the same of these, whether that token is there or not. The greatest
//! logit is at least the greatest lower end `M`. `selection.wgsl` subtracts the same number from it as
//! this kernel from `M`, and rounding keeps the order. So the limit for `M` is not above min-p's.
//!
//! With top-p, and without top-k, the weights of all tokens together decide. They take all logits.
//!
//! # Which draws it pays for
//!
//! Rows that are not ruled out are read in full, so this reads less than the whole LM head where half
//! of the rows are ruled out. `pays` says for which settings that is so. Other settings would get the
//! same tokens. In a Gaussian embedding, no token stands out. There the bound is 1.3 standard deviations
//! of the logits. By the normal distribution, that leaves about a fifth of 128 256 rows for a `k` of 40,
//! and two fifths for 250.

use super::rescore::{MAX_NORM, MIN_NORM, SLACK, TOGETHER, VOCAB_BLOCK, row_groups};
use super::rows::{LmHeadRows, ShardRows, dense_consts, shard_consts};
use super::{Approximation, Dense, DenseType, SamplingParams};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Used};
use crate::lanes_variants;
use crate::sampling::Sampling;

/// A bin's width and what rounding takes, in bins.
const BIN_AND_MORE: f32 = 1.01;

/// What rounding takes of a limit, as a share of it.
const ROUNDING: f32 = 3e-7;

/// Leads for each token of top-k, at least. With fewer, the tokens that are best of all share leads.
const LEADS_EACH: usize = 4;

/// The furthest below the greatest logit that min-p may go.
const MAX_REACH: f64 = 4.0;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rescore_kept",
    bindings: &[
        ("embd", Access::Read),
        ("sampling", Access::Uniform),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("error", Access::Read),
        ("leads", Access::Read),
        ("logits", Access::Write),
        ("greatest", Access::Write),
        ("embd_1", Access::Read),
    ],
    variants: lanes_variants!("lanes", "group";
        "shared/sampling",
        "shared/keys",
        "shared/split_f16",
        "shared/f16_products",
        "shared/split_row",
        "shared/shards",
        "shared/candidates",
        "rescore_kept"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let shards = shard_consts(&[0..600, 600..1000]);
        [dense_consts(&rows, DenseType::F16Split, 0), shards, consts(32, 2004)].concat()
    },
};

fn consts(lanes: u32, n_leads: usize) -> Vec<Const> {
    let own = [
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_LEADS", n_leads),
        Const::F32("SLACK", SLACK),
        Const::F32("MIN_NORM", MIN_NORM),
        Const::F32("MAX_NORM", MAX_NORM),
        Const::F32("BIN_AND_MORE", BIN_AND_MORE),
        Const::F32("ROUNDING", ROUNDING),
    ];
    [row_groups(lanes).consts(), own.into()].concat()
}

/// Whether [`Recorder::rescore_kept`] reads less than the whole LM head for a draw with top-k, top-p or
/// min-p, where there are `n_leads`.
pub fn pays(sampling: &Sampling, n_leads: usize) -> bool {
    let few = (1..=n_leads / LEADS_EACH).contains(&(sampling.top_k as usize));
    let near = sampling.top_p >= 1.0 && sampling.reach() <= MAX_REACH;
    few || near
}

impl Recorder<'_> {
    /// Makes logits of the approximate logits in `approximation`, which `gemv_upper` has computed: those
    /// of all rows of `embd` that top-k and min-p may keep. The others are no numbers. `greatest` is
    /// `[rescored_blocks()]`: the key of the greatest logit of each vocabulary block.
    pub fn rescore_kept(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        embd: &Dense,
        x: &Buffer<f32>,
        approximation: &Approximation,
        greatest: &Buffer<u32>,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let Approximation { error, approx, leads, .. } = approximation;
        // The hidden state decides how many rows are read. It is at least one.
        let one = Used::Fixed((embd.k * embd.ty.bytes() / embd.shards.len()) as u64);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: TOGETHER,
            rows_per_workgroup: VOCAB_BLOCK,
            consts: consts(self.tuning().lanes, leads.len()),
            buffers: &[sampling, &embd.shifts, x, error, leads, approx, greatest],
        }
        .record_using(self, |_| one);
    }
}
