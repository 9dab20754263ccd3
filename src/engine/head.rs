//! How the LM head is held, and what the search for the best token among candidates needs.

use super::Head;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Plan, Recorder, Step};
use crate::kernels::{Dense, DenseType, MOST_SPLIT, leads, rescored_stretches, split_f16};

/// One row in so many may hold values of 2 and more for `auto` to split: such a row always has to be
/// read in full.
const ROWS_PER_LARGE: usize = 16;

/// A head of fewer bytes is not split by `auto`.
const LEAST_BYTES: usize = 32 << 20;

/// Buffers of the greedy search on a split embedding.
pub(super) struct Candidates {
    /// What the upper bytes alone may be off by, relative to the hidden state's norm `[n_vocab]`.
    pub(super) error: Buffer<f32>,
    /// The greatest approximate logit of each workgroup, and its row's error.
    pub(super) leads: Buffer<[f32; 2]>,
    /// The best token of each stretch of the vocabulary.
    pub(super) best: Buffer<[u32; 2]>,
}

impl Candidates {
    /// Parts the values of `embd` into bytes, for good.
    pub(super) fn split(recorder: &mut Recorder, embd: &mut Dense) -> Self {
        let gpu = recorder.gpu();
        let error = gpu.buffer("head_error", embd.rows);
        let mut plan = Plan::default();
        split_f16(recorder, &mut plan, embd, &error);
        gpu.run(&[&plan], &Step::default());
        Self {
            error,
            leads: gpu.buffer("head_leads", leads(gpu, embd)),
            best: gpu.buffer("head_best", rescored_stretches(embd)),
        }
    }
}

/// Refuses an embedding that cannot be parted, where that is asked for.
///
/// Errors: `bad-option`.
pub(super) fn check(head: Head, embd: &Dense) -> Result<()> {
    match obstacle(embd) {
        Some(why) if head == Head::Int8 => {
            Err(Error::BadOption { name: "head".into(), why: format!("cannot be int8: {why}") })
        }
        _ => Ok(()),
    }
}

/// Whether to part `embd`, which has so many values of 2 and more.
///
/// `auto` does where it pays: a CPU computes longer on half the bytes than it reads the other half,
/// and a small head is read in less time than its candidates are found.
pub(super) fn splits(head: Head, embd: &Dense, large: usize, software: bool) -> bool {
    let pays = || {
        !software
            && embd.rows * embd.k * embd.ty.bytes() >= LEAST_BYTES
            && large * ROWS_PER_LARGE <= embd.rows
    };
    match head {
        Head::F16 => false,
        Head::Int8 => true,
        Head::Auto => obstacle(embd).is_none() && pays(),
    }
}

fn obstacle(embd: &Dense) -> Option<String> {
    let k = embd.k;
    if embd.ty != DenseType::F16 {
        return Some("the embedding is not of F16".into());
    }
    (k > MOST_SPLIT).then(|| format!("rows have {k} values, and {MOST_SPLIT} are the most"))
}
