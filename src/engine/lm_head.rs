//! How the LM head is held, and the buffers for the search of the best token among candidates.

use super::weights::Vocabulary;
use crate::compute::LmHead;
use crate::error::Result;
use crate::gpu::{Allocation, Buffer, Gpu, Plan, Recorder, Step};
use crate::kernels::{
    Approximation, Dense, DenseType, Rescored, leads, pays, rescored_blocks, vocab_blocks,
};
use crate::sampling::Sampling;

/// The plans and buffers of the searches on a split embedding.
pub(super) struct Candidates {
    split: Plan,
    pub(super) approximation: Approximation,
    /// The approximate logits with biases and penalties.
    pub(super) adjusted: Approximation,
    /// The best token of each vocabulary block.
    pub(super) best: Buffer<[u32; 2]>,
    /// The buffers that the kernels which find logits pass to each other.
    pub(super) rescored: Rescored,
}

impl Candidates {
    /// Allocates the buffers, and records how to split `embd`. [`Candidates::split`] does it later.
    /// All plans that are recorded from now on take `embd` as split already.
    ///
    /// `approx` is for the approximate logits, `adjusted` for those with biases and penalties.
    ///
    /// Errors: `out-of-memory`.
    pub(super) async fn prepare(
        recorder: &mut Recorder<'_>,
        embd: &mut Dense,
        [approx, adjusted]: [&Buffer<f32>; 2],
    ) -> Result<Self> {
        let all = recorder.gpu().allocating("the search for the best token", |allocation| {
            Self::buffers(allocation, embd, [approx, adjusted])
        });
        let all = all.await?;
        recorder.split_f16(embd, &all.approximation.error);
        Ok(Self { split: recorder.finish(), ..all })
    }

    /// The bytes that [`Candidates::prepare`] would take.
    pub(super) fn measure(gpu: &Gpu, embd: &Dense, approx: [&Buffer<f32>; 2]) -> u64 {
        gpu.measuring(false, |allocation| drop(Self::buffers(allocation, embd, approx))).1
    }

    /// The buffers, with no plan yet.
    fn buffers(
        allocation: &mut Allocation<'_>,
        embd: &Dense,
        [approx, adjusted]: [&Buffer<f32>; 2],
    ) -> Self {
        let gpu = allocation.gpu();
        let approximation = Approximation {
            error: allocation.buffer("lm_head_error", embd.rows),
            approx: approx.clone(),
            leads: allocation.buffer("lm_head_leads", leads(gpu, embd)),
            adjusted: false,
        };
        let leads = allocation.buffer("lm_head_leads", vocab_blocks(embd.rows));
        let (error, approx) = (approximation.error.clone(), adjusted.clone());
        let adjusted = Approximation { error, approx, leads, adjusted: true };
        let best = allocation.buffer("lm_head_best", rescored_blocks(embd));
        let rescored = Rescored::allocate(allocation, embd);
        Self { split: Plan::default(), approximation, adjusted, best, rescored }
    }

    /// Whether a draw with these top-k, top-p and min-p uses the search for the rows that may be
    /// kept.
    pub(super) fn keep(&self, sampling: &Sampling) -> bool {
        pays(sampling, self.approximation.leads.len())
    }

    /// The plan that [`Candidates::split`] runs.
    pub(super) fn splitting(&self) -> &Plan {
        &self.split
    }

    /// Splits the values for good. They must have been uploaded. To be called once.
    pub(super) fn split(&self, gpu: &Gpu) {
        gpu.run(&[&self.split], &Step::default());
    }
}

/// Whether to split `w`.
///
/// Errors: `bad-option` if it cannot be split, but the caller asks for it.
pub(super) fn splits(lm_head: LmHead, w: &Vocabulary, gpu: &Gpu) -> Result<bool> {
    let (is_f16, shape) = match w.dense() {
        Some(Dense { rows, k, ty, .. }) => (*ty == DenseType::F16, [*rows, *k]),
        None => (false, [0; 2]),
    };
    lm_head.splits(is_f16, shape, gpu.tuning.split_lm_head)
}
