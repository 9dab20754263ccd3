//! How the LM head is held, and what the search for the best token among candidates needs.

use super::LmHead;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use crate::kernels::{Dense, DenseType, MAX_SPLIT_COLUMNS, leads, rescored_stretches, split_f16};

/// One row in so many may hold values of 2 and more for `auto` to split: such a row always has to be
/// read in full.
const ROWS_PER_LARGE: usize = 16;

/// A head of fewer bytes is not split by `auto`.
const MIN_BYTES: usize = 32 << 20;

/// What the greedy search on a split embedding takes.
pub(super) struct Candidates {
    parting: Plan,
    /// What the upper bytes alone may be off by, relative to the hidden state's norm `[n_vocab]`.
    pub(super) error: Buffer<f32>,
    /// The greatest approximate logit of each workgroup, and its row's error.
    pub(super) leads: Buffer<[f32; 2]>,
    /// The best token of each stretch of the vocabulary.
    pub(super) best: Buffer<[u32; 2]>,
}

impl Candidates {
    /// Sees to it that the values of `embd` will be parted into bytes, by [`Candidates::split`]: plans that
    /// are recorded from now on take them so.
    ///
    /// Errors: `out-of-memory`.
    pub(super) async fn prepare(recorder: &mut Recorder<'_>, embd: &mut Dense) -> Result<Self> {
        let gpu = recorder.gpu();
        let buffers = || {
            let error = gpu.buffer("head_error", embd.rows);
            let leads = gpu.buffer("head_leads", leads(gpu, embd));
            (error, leads, gpu.buffer("head_best", rescored_stretches(embd)))
        };
        let (error, leads, best) = gpu.allocating("the search for the best token", buffers).await?;
        let mut parting = Plan::default();
        split_f16(recorder, &mut parting, embd, &error);
        Ok(Self { parting, error, leads, best })
    }

    /// Gives its memory back, where the values are not to be parted after all.
    pub(super) fn free(self, gpu: &Gpu) {
        gpu.free(&self.error);
        gpu.free(&self.leads);
        gpu.free(&self.best);
    }

    /// Parts the values, which have been uploaded, for good. To be called once.
    pub(super) fn split(&self, gpu: &Gpu) {
        gpu.run(&[&self.parting], &Step::default());
    }
}

/// Refuses an embedding that cannot be parted, where that is asked for.
///
/// Errors: `bad-option`.
pub(super) fn check(head: LmHead, embd: &Dense) -> Result<()> {
    match obstacle(embd) {
        Some(why) if head == LmHead::Int8 => {
            Err(Error::BadOption { name: "head".into(), why: format!("cannot be int8: {why}") })
        }
        _ => Ok(()),
    }
}

/// Whether to part `embd`, as far as can be said before its values are there.
///
/// `auto` does where it pays: a CPU computes longer on half the bytes than it reads the other half,
/// and a small head is read in less time than its candidates are found.
pub(super) fn splits(head: LmHead, embd: &Dense, software: bool) -> bool {
    let pays = !software && embd.rows * embd.k * embd.ty.bytes() >= MIN_BYTES;
    match head {
        LmHead::F16 => false,
        LmHead::Int8 => true,
        LmHead::Auto => pays && obstacle(embd).is_none(),
    }
}

/// Whether it pays still, `embd` having so many values of 2 and more.
pub(super) fn still_pays(head: LmHead, embd: &Dense, large: usize) -> bool {
    head == LmHead::Int8 || large * ROWS_PER_LARGE <= embd.rows
}

fn obstacle(embd: &Dense) -> Option<String> {
    let k = embd.k;
    if embd.ty != DenseType::F16 {
        return Some("the embedding is not of F16".into());
    }
    (k > MAX_SPLIT_COLUMNS)
        .then(|| format!("rows have {k} values, and {MAX_SPLIT_COLUMNS} are the most"))
}
