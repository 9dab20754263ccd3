//! How far a generation is: what pipelining and drafting share.

use super::pace::Pace;
use super::stats::Stats;
use crate::compute::Steps;

/// How far a generation is.
pub(super) struct Run<'a> {
    pub(super) model: &'a dyn Steps,
    /// The prompt and the tokens after it.
    pub(super) tokens: &'a mut Vec<u32>,
    /// How many of them are the prompt.
    pub(super) prompt: usize,
    /// Positions of the KV cache that are filled, or will be by the steps in flight.
    pub(super) filled: &'a mut usize,
    pub(super) pace: &'a mut Pace,
    pub(super) stats: Stats,
    /// Tokens that may still be submitted.
    pub(super) left: usize,
    /// Whether the token that the next step computes is on the GPU, where a step has put it. After
    /// a draft pass it is not.
    pub(super) last_is_on_gpu: bool,
}
