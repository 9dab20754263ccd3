//! Finds the logits that decide a draw with top-k, top-p or min-p from half of the LM head's bytes. This
//! comment proves that all of the bytes would give the same token.
//!
//! `gemv_upper` computes an approximate logit `A` for every row, which is within a bound `B` of the
//! logit `F`: `rescore` proves that. So `F` is between the row's lower end `A - B` and its upper end
//! `A + B`. This kernel rules out the rows whose upper ends are below a limit. It computes `F` of the
//! others as `gemv_lm_head` does. `sample_bins`, `sample_sift` and `sample_decide` then choose among
//! those as among all.
//!
//! The settings give several limits, and the kernel takes the greatest. Limits come from the leads,
//! which are all different rows.
//!
//! # Top-k
//!
//! Let `L` be the lower end number `k` among those of the leads. So `k` rows have an `F` of at
//! least `L`, and the logit number `k` of all rows is at least `L`. Let `b` be its bin, see
//! `selection.rs`. Every row with an `F` that is a bin's width or more below `L` is in a bin after
//! `b`. The limit is somewhat more than a bin's width below `L`. So all tokens of bin `b` and of
//! the bins before it are there, with their logits. No count, no weight and no list that top-k and
//! top-p use has any other token:
//!
//! - `sample_sift` adds up bins from the first on, and `b` is where the count reaches `k`. Top-p keeps
//!   some of the tokens that top-k accepts, so it ends in bin `b` or before.
//! - `sample_decide` gets the tokens of bin `b` and of those in which top-p may end.
//!
//! If `b` is the last bin, then top-k accepts all tokens before it, and they are there too.
//!
//! The kernel finds `L` by counting leads whose lower ends are not below it. It counts the keys of
//! these ends, which sort as the values do. It finds only the upper bits of `L` and takes the rest
//! as 0, which lowers `L`. `BIN_AND_MORE` and `ROUNDING` cover rounding. A distance in bins is the
//! rounded product of a rounded difference. Below 1023 bins it is off by less than 0.0002 bins, and
//! beyond that the last bin has the token. The limit itself is off by less than `2u` times `|L|`
//! and 0.001 bins.
//!
//! # Min-p
//!
//! If top-p keeps all tokens, no token's weight matters. A token below min-p's limit comes after
//! all that min-p keeps. So top-k accepts the same tokens of those, whether that token is there or
//! not. The greatest logit is at least the greatest lower end `M`. `selection.wgsl` subtracts a
//! number from the greatest logit, and this kernel subtracts the same number from `M`. Rounding
//! keeps the order. So the limit for `M` is not above min-p's.
//!
//! # Top-p alone
//!
//! Without top-k, the weights of all tokens together decide. So the limit rules out the rows that are likely
//! to weigh little: it is `NATS` below `M`. They weigh at most `U`, the sum of their `exp((A + B - G) / T)`,
//! where `G` is the greatest logit. That logit is there, because the lead of `M` is. `sample_bins` sorts the
//! logits that are there. Then `sample_check` finds out whether `U` could matter:
//!
//! - Let `P` be the weight of the tokens that are there. Let `b` be the first bin to which they weigh `p P`
//!   or more, less a margin.
//! - The logits that are not there are below the limit. If that is in a bin after `b`, then `b` and the bins
//!   before it have the same tokens as with all logits, and so the same sums.
//! - With all logits, the weight is between `P` and `P + U`. So top-p ends in `b` or later. If the tokens up
//!   to `b` weigh `p (P + U)` or more, and a margin, then it does not end later: `sample_sift` finds `b` as
//!   the first bin and as the last one in which top-p may end, whichever weight it is.
//! - If there is one token in `b`, then it is the last one that is accepted. It is all that `sample_sift`
//!   lists, and no weight tells it from others.
//!
//! If all of this holds, the draw is the one from all logits, to the bit. If not, `rescore_rest`
//! computes the other logits and sorts them into the bins. None of them is above `G`, and bins are
//! integers. So the next kernels get the values that `sample_max` and `sample_bins` give for all
//! logits. Both kernels are always submitted, so the CPU does not wait for the answer of the check.
//! `rescore_rest` ends at once if it is not needed.
//!
//! The margin is four times `SUM_ERROR` of `bin_sums.wgsl`. The sum with the rows that are ruled
//! out and the sum without them may each be off by one `SUM_ERROR`, and `sample_sift` takes one
//! more. A token of the last bin weighs nothing in either sum. `U` gets a hundredth on top, which
//! covers rounding. A weight is the product of two exponentials: of a row below the limit, and of
//! the limit below `G`. As long as the exponents are not below -70, each rounds by less than 2⁻¹⁶,
//! and `exp` in WGSL is off by less than 2⁻¹⁵ of its value. Smaller weights are nothing beside the
//! margin.
//!
//! # Where it is used
//!
//! Rows that are not ruled out are read in full. So this reads less than the whole LM head if half
//! of the rows are ruled out. `pays` says for which settings that is so. Other settings would get
//! the same tokens, but later. In a Gaussian embedding, no token stands out. There the bound is 1.3
//! standard deviations of the logits. By the normal distribution, that leaves about a fifth of 128
//! 256 rows for a `k` of 40, and two fifths for 250.
//!
//! With top-p alone it depends on the text. If a few tokens have most of the weight, nearly all
//! rows are ruled out, and half of the bytes are read. If the check fails, one and a half times all
//! bytes are read. This was computed for 392 hidden states of the bundled model, whose bound is
//! 1.35 logits. The last columns are for other values of `NATS`:
//!
//! | temperature | top-p | checks that hold | bytes read, of all | with 4 nats | with 2 nats |
//! |---|---|---|---|---|---|
//! | 0.7 | 0.9 | 91 % | 60 % | 66 % | 71 % |
//! | 0.7 | 0.95 | 86 % | 65 % | 71 % | 76 % |
//! | 0.7 | 0.99 | 78 % | 72 % | 81 % | 91 % |
//! | 1 | 0.9 | 76 % | 74 % | 79 % | 83 % |
//! | 1 | 0.95 | 72 % | 78 % | 83 % | 91 % |
//! | 1 | 0.99 | 59 % | 91 % | 98 % | 104 % |
//!
//! With a Gaussian embedding, many tokens share the weight: top-p alone reads all of its rows.

use super::gemv_upper::Approximation;
use super::rescore::{TOGETHER, VOCAB_BLOCK, rescored_blocks, row_groups};
use super::rows::{LmHeadRows, ShardRows, dense_consts, shard_consts};
use super::selection::SamplingParams;
use super::weight::{Dense, DenseType};
use crate::compute::{MAX_NORM, MIN_NORM, SLACK};
use crate::gpu::{Access, Allocation, Buffer, Const, Kernel, Recorder, Used};
use crate::lanes_variants;
use crate::sampling::Sampling;

/// A bin's width and the rounding error, in bins.
const BIN_AND_MORE: f32 = 1.01;

/// The rounding error of a limit, as a share of it.
const ROUNDING: f32 = 3e-7;

/// With top-p alone, the limit is so far below the greatest lower end, in units of the temperature.
const NATS: f32 = 8.0;

/// The greatest top-p and temperature with which top-p alone is worth this search. With greater
/// ones, too many tokens share the weight.
const MAX_SHARE: f32 = 0.99;
const MAX_TEMPERATURE: f32 = 1.0;

/// The fewest leads for each token of top-k. With fewer leads, the best tokens of all would share
/// some.
const LEADS_EACH: usize = 4;

/// The greatest distance below the greatest logit at which min-p may keep tokens.
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
        "shared/upper_ends",
        "rescore_kept"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let shards = shard_consts(&[0..600, 600..1000]);
        [dense_consts(&rows, DenseType::F16Split, 0), shards, consts(32, 2004, 501)].concat()
    },
};

fn consts(lanes: u32, n_leads: usize, n_blocks: usize) -> Vec<Const> {
    let own = [
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_LEADS", n_leads),
        Const::F32("SLACK", SLACK),
        Const::F32("MIN_NORM", MIN_NORM),
        Const::F32("MAX_NORM", MAX_NORM),
        Const::F32("BIN_AND_MORE", BIN_AND_MORE),
        Const::F32("ROUNDING", ROUNDING),
        Const::F32("NATS", NATS),
        Const::size("N_BLOCKS", n_blocks),
    ];
    [row_groups(lanes).consts(), own.into()].concat()
}

/// Whether [`Recorder::rescore_kept`] reads less than the whole LM head for a draw with top-k,
/// top-p or min-p, if there are `n_leads`.
pub fn pays(sampling: &Sampling, n_leads: usize) -> bool {
    let few = (1..=n_leads / LEADS_EACH).contains(&(sampling.top_k as usize));
    let near = sampling.top_p >= 1.0 && sampling.reach() <= MAX_REACH;
    few || near
}

/// Whether top-p alone seldom needs [`Recorder::rescore_rest`], in usual texts.
pub fn pays_mostly(sampling: &Sampling) -> bool {
    let alone = sampling.top_k == 0 && sampling.top_p <= MAX_SHARE;
    alone && sampling.temperature <= MAX_TEMPERATURE
}

/// The buffers that the kernels which find logits pass to each other and to the kernels that choose
/// a token.
pub struct Rescored {
    /// `[rescored_blocks()]`: the key of the greatest logit of each vocabulary block.
    pub greatest: Buffer<u32>,
    /// `[3, rescored_blocks()]`: the keys of `greatest`, then the most that a block's rows without
    /// a logit can weigh together, then the limit. See `rescore_kept.wgsl`.
    pub(super) blocks: Buffer<u32>,
    /// `[1]`: whether the logits of the rows that were left out are needed.
    pub(super) rest: Buffer<u32>,
}

impl Rescored {
    /// Asks for the buffers for the LM head `embd`.
    pub fn allocate(a: &mut Allocation<'_>, embd: &Dense) -> Self {
        let n = rescored_blocks(embd);
        let blocks = a.buffer("lm_head_greatest", 3 * n);
        Self { greatest: blocks.first(n), blocks, rest: a.buffer("lm_head_rest", 1) }
    }
}

impl Recorder<'_> {
    /// Computes the logits of all rows of `embd` that top-k, top-p and min-p may keep. It finds
    /// these rows by the approximate logits in `approximation`, which `gemv_upper` has computed.
    /// The other logits become NaN. With top-p and without top-k, `sample_bins`,
    /// [`Recorder::sample_check`] and [`Recorder::rescore_rest`] have to follow.
    pub fn rescore_kept(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        embd: &Dense,
        x: &Buffer<f32>,
        approximation: &Approximation,
        rescored: &Rescored,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let Approximation { error, approx, leads, .. } = approximation;
        // How many rows are read depends on the hidden state. It is at least one.
        let one = Used::Fixed((embd.k * embd.ty.bytes() / embd.shards.len()) as u64);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: TOGETHER,
            rows_per_workgroup: VOCAB_BLOCK,
            consts: consts(self.tuning().lanes, leads.len(), rescored.greatest.len()),
            buffers: &[sampling, &embd.shifts, x, error, leads, approx, &rescored.blocks],
        }
        .record_using(self, |_| one);
    }
}
