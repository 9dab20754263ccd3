//! Serves a session with any model that the CPU computes: slots, the choice of tokens, ranges of
//! the KV cache. [`Model`] is the model. A step is computed when it is submitted.

mod compute;

pub use compute::{Host, HostTraits};

use crate::compute::{About, Site};
use crate::error::Result;
use crate::model::{Adapters, Config};

/// A token to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where its sequence begins in the KV cache.
    pub first: usize,
    /// Its position in the sequence.
    pub pos: usize,
    /// The token.
    pub id: u32,
}

/// A model that the CPU computes, with its KV cache.
pub trait Model {
    /// The model's sizes.
    fn config(&self) -> &Config;

    /// Facts about it.
    fn about(&self) -> About;

    /// Computes tokens up to the product `site` of block `block`. Returns the product's result for each
    /// token. The blocks up to this one add the tokens to their KV cache. A call may hold tokens of several
    /// sequences; those of one sequence are in their order. A token's result is the one that it would have
    /// in a call of its own.
    fn values(&mut self, rows: &[Row], block: usize, site: Site) -> Vec<Vec<f32>>;

    /// The queries of block `block` for each token, as [`Tap::Queries`](crate::compute::Tap::Queries) has them. The
    /// blocks up to this one add the tokens to their KV cache.
    fn queries(&mut self, rows: &[Row], block: usize) -> Vec<Vec<f32>>;

    /// The hidden state of each residual stream, which is the stream after the last norm.
    fn hidden(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>>;

    /// The logits `[n_vocab]` of each residual stream.
    fn logits(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>>;

    /// The token with the greatest logit after each residual stream; of equal ones, the one with the lowest id.
    /// `None` if finding it takes all logits.
    fn best(&mut self, _streams: &[Vec<f32>]) -> Option<Vec<u32>> {
        None
    }

    /// Applies these adapters, and no others, to the tokens to come. If there is no memory for them, none is
    /// applied.
    ///
    /// Errors: `out-of-memory`.
    fn set_adapters(&mut self, adapters: &Adapters) -> Result<()>;

    /// Bytes of a position in each buffer of the KV cache, a multiple of 4. The buffers are the keys of
    /// the first block, its values, and so on.
    fn position_bytes(&self) -> usize;

    /// Makes room for `positions` in the KV cache. It keeps its contents. Gives whether there was the
    /// memory.
    fn grow(&mut self, positions: usize) -> bool;

    /// Copies `n` positions of the KV cache.
    fn copy(&mut self, from: usize, to: usize, n: usize);

    /// Reads `n` positions of a buffer of the KV cache; `None` if it has no such positions.
    fn read(&mut self, buffer: usize, first: usize, n: usize) -> Option<Vec<u32>>;

    /// Writes positions of a buffer of the KV cache, from `first` on. `bytes` are what [`Model::read`] gave.
    fn write(&mut self, buffer: usize, first: usize, bytes: &[u8]);

    /// Bytes that a greedy decode step with `pos` tokens in the cache has to read in the layers.
    fn layer_bytes(&self, _pos: usize) -> u64 {
        0
    }

    /// Bytes of the LM head that it has to read.
    fn head_bytes(&self) -> u64 {
        0
    }

    /// The rate in GB/s at which all threads together read memory; `None` if it is not of interest.
    fn bandwidth(&mut self) -> Option<f64> {
        None
    }
}
