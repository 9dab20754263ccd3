//! How top-k, top-p and min-p find the tokens that can be drawn.
//!
//! Tokens are ordered by their logits, and equal ones by their ids. Each filter accepts the first
//! tokens in this order. The kernels find how many:
//!
//! 1. `sample_max` finds the greatest logit. If `rescore_kept` has computed the logits, it has
//!    found the greatest one too.
//! 2. `sample_bins` sorts all tokens into bins by their distance from it. A bin is a 32nd of a nat
//!    wide: it spans logits that differ by a 32nd of the temperature.
//! 3. `sample_sift` adds up the bins. So it finds the bins in which top-k and top-p end. Of the
//!    tokens above these bins, it takes the best one of each vocabulary block. It lists the tokens
//!    in them.
//! 4. `sample_decide` finds the exact tokens at which top-k and top-p end, and takes the best.
//!
//! # Tokens of the last bin
//!
//! The last bin has the tokens that are 32 nats or more below the greatest logit. Top-k and top-p
//! never end in it. Instead they accept all tokens above it. This changes no draw. The noise of
//! `noise.wgsl` comes from 23 random bits, and is between -2.9 and 16.7. So a token that is 20 nats
//! below the best never wins. In a vocabulary of 2¹⁸ tokens, those of the last bin have a share of
//! the probability of less than 4 in a billion.

use crate::gpu::{Allocation, Buffer, Const};
use crate::sampling::{MAX_LOGPROBS, Sampling};

use super::workgroups::{VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::compute::NO_TOKEN;

/// The number of bins, which one workgroup's histogram holds.
const N_BINS: usize = 1024;

/// Bins for each nat, which is a unit of logit / temperature.
const BINS_PER_NAT: f32 = 32.0;

/// [`Sampling`] in the form that the sampling kernels read; `struct Sampling` in
/// `shared/sampling.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct SamplingParams {
    inverse_temperature: f32,
    top_k: u32,
    top_p: f32,
    reach: f32,
    seed: u32,
    bins_per_logit: f32,
    all_bins: f32,
    n_top: u32,
}

impl From<&Sampling> for SamplingParams {
    fn from(sampling: &Sampling) -> Self {
        let temperature = sampling.divisor() as f32;
        let inverse_temperature = if sampling.is_greedy() { 0.0 } else { temperature.recip() };
        Self {
            inverse_temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            reach: sampling.reach() as f32,
            seed: sampling.seed,
            bins_per_logit: BINS_PER_NAT * inverse_temperature,
            all_bins: temperature * ((N_BINS - 1) as f32 / BINS_PER_NAT),
            n_top: 0,
        }
    }
}

impl SamplingParams {
    /// The same settings, with the log-probabilities of `n_top` of the likeliest tokens, at most
    /// [`MAX_LOGPROBS`].
    pub fn with_logprobs(self, n_top: usize) -> Self {
        Self { n_top: n_top.min(MAX_LOGPROBS) as u32, ..self }
    }
}

/// The buffers that the kernels of top-k, top-p and min-p share.
pub struct Selection {
    /// `[vocab_blocks]`: the key of the greatest logit of each block.
    pub greatest: Buffer<u32>,
    /// `[N_BINS]`: the number of tokens, and how much less they weigh than if all were at the bin's
    /// upper end.
    pub(super) bins: Buffer<[u32; 2]>,
    /// `[1]`: where top-k and top-p end, as far as the bins show it; `struct Border`.
    pub(super) border: Buffer<[u32; 7]>,
    /// `[1]`: the number of tokens in `undecided`.
    pub(super) n_undecided: Buffer<u32>,
    /// `[n_vocab]`: keys and ids of tokens that may be accepted.
    pub(super) undecided: Buffer<[u32; 2]>,
    /// `[1]`: the last token that can be drawn, as two keys. The first sorts as logits do. The
    /// second is greater for lower ids.
    pub cut: Buffer<[u32; 2]>,
}

impl Selection {
    /// Asks for the buffers for a vocabulary of `n_vocab` tokens.
    pub fn allocate(a: &mut Allocation<'_>, n_vocab: usize) -> Self {
        Self {
            greatest: a.buffer("sample_greatest", vocab_blocks(n_vocab)),
            bins: a.buffer("sample_bins", N_BINS),
            border: a.buffer("sample_border", 1),
            n_undecided: a.buffer("sample_n_undecided", 1),
            undecided: a.buffer("sample_undecided", n_vocab),
            cut: a.buffer("sample_cut", 1),
        }
    }
}

/// The constants of the bins.
pub(super) fn bin_consts(n_vocab: usize) -> Vec<Const> {
    // Sums over the vocabulary add integer shares of a whole. With so many shares they stay below
    // 2^32.
    let fine = (u32::MAX / n_vocab as u32).clamp(1, 1 << 23);
    vec![
        Const::size("N_BINS", N_BINS),
        Const::F32("BINS_PER_NAT", BINS_PER_NAT),
        Const::F32("FINE", (1u32 << fine.ilog2()) as f32),
    ]
}

/// The constants of all these kernels.
pub(super) fn consts(n_vocab: usize) -> Vec<Const> {
    let own = vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_BLOCKS", vocab_blocks(n_vocab)),
        Const::U32("NO_TOKEN", NO_TOKEN),
    ];
    [own, bin_consts(n_vocab)].concat()
}
