//! The likeliest tokens and their log-probabilities, in two kernels. `logprob_blocks` finds the
//! likeliest tokens of each vocabulary block. `logprob_record` finds those of all blocks. They read
//! the model's own logits, before biases and penalties.

use super::workgroups::{FEW, VOCAB_BLOCK, WORKGROUP, vocab_blocks};
use crate::compute::NO_TOKEN;
use crate::gpu::{Allocation, Buffer, Const};
use crate::sampling::{Logprobs, MAX_LOGPROBS};

/// Records of a sequence. The record of a position is the position modulo this. Steps that are
/// submitted together are at most so many, and so are the tokens of a draft pass.
pub const N_RECORDS: usize = FEW;

/// The log-probabilities of one row of logits; `struct Record` in `logprob_record.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// The row's token. In a step that chooses one token, it is the chosen one.
    pub id: u32,
    /// The logit of that token.
    logit: f32,
    /// The greatest logit of the row.
    greatest: f32,
    /// The sum of exp(logit - greatest) of all tokens.
    weights: f32,
    /// The likeliest tokens: the bits of the logit, and the id.
    top: [[u32; 2]; MAX_LOGPROBS],
    /// With this padding, the records of a sequence fill a multiple of 256 bytes, at which a
    /// binding can begin.
    pad: [u32; 4],
}

const _: () = assert!((N_RECORDS * size_of::<Record>()).is_multiple_of(256));

impl Record {
    /// The log-probabilities of the row's token and of the `n_top` likeliest ones.
    pub fn logprobs(&self, n_top: usize) -> Logprobs {
        self.logprobs_of(self.logit, n_top)
    }

    /// The log-probabilities of a token with this logit and of the `n_top` likeliest ones.
    pub fn logprobs_of(&self, logit: f32, n_top: usize) -> Logprobs {
        let of = |logit: f32| Logprobs::of(logit, self.greatest, f64::from(self.weights));
        let top = self.top.iter().take(n_top).filter(|[_, id]| *id != NO_TOKEN);
        Logprobs {
            logprob: of(logit),
            top: top.map(|&[bits, id]| (id, of(f32::from_bits(bits)))).collect(),
        }
    }
}

/// The likeliest tokens of each vocabulary block, which `logprob_blocks` passes to
/// `logprob_record`.
pub struct Likeliest {
    /// `[n_rows, vocab_blocks]`: the greatest logit, and the sum of weights.
    pub(super) weights: Buffer<[f32; 2]>,
    /// `[n_rows, vocab_blocks, MAX_LOGPROBS]`: bits of the logit, id.
    pub(super) tops: Buffer<[u32; 2]>,
}

impl Likeliest {
    /// Asks for the buffers for `n_rows` rows of `n_vocab` logits.
    pub fn allocate(a: &mut Allocation<'_>, n_rows: usize, n_vocab: usize) -> Self {
        let blocks = n_rows * vocab_blocks(n_vocab);
        Self {
            weights: a.buffer("logprob_weights", blocks),
            tops: a.buffer("logprob_tops", blocks * MAX_LOGPROBS),
        }
    }
}

/// The constants of both kernels.
pub(super) fn consts(n_vocab: usize) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_VOCAB", n_vocab),
        Const::size("VOCAB_BLOCK", VOCAB_BLOCK),
        Const::size("N_BLOCKS", vocab_blocks(n_vocab)),
        Const::size("MAX_TOP", MAX_LOGPROBS),
        Const::size("N_RECORDS", N_RECORDS),
        Const::U32("NO_TOKEN", NO_TOKEN),
    ]
}
