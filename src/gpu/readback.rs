//! Results that are copied back from the GPU.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::PoisonError;

use bytemuck::Pod;
use futures_channel::oneshot;

use super::commands::Commands;
use super::fault::attempt;
use super::mapped::Mapping;
use super::ordered::{Submission, Ticket, Work};
use super::{Buffer, Gpu, Link, Plan, Step};
#[cfg(not(target_arch = "wasm32"))]
use crate::compute::let_others_run;
use crate::error::Result;

/// Staging buffers of up to this many bytes are kept for the next readback. They are used for
/// tokens, and for the best of each vocabulary block for each token of a draft.
const MAX_KEPT: u64 = 16 << 10;

/// The bytes of a staging buffer are a multiple of this, so that one buffer fits any few tokens.
const STAGING: u64 = 256;

/// The dispatches in the first part of a step that is submitted in parts. Each part has twice as
/// many as the one before, because the GPU takes longer for a dispatch than encoding it takes.
const FIRST_PART: usize = 32;

/// A copy of values of a buffer that was submitted and can be awaited.
///
/// Several may be in flight; each is awaited when its values are needed.
pub struct Readback<T> {
    link: Link,
    staging: wgpu::Buffer,
    /// Bytes of the copy, at the beginning of `staging`.
    size: u64,
    mapped: oneshot::Receiver<Mapping>,
    ticket: Ticket,
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "browsers poll"))]
    submission: Submission,
    marker: PhantomData<T>,
}

impl Gpu {
    /// Runs `plans` in one compute pass, and copies the first `len` values of `result`.
    pub fn run_and_read<T: Pod>(
        &self,
        plans: &[&Plan],
        step: &Step,
        result: &Buffer<T>,
        len: usize,
    ) -> Readback<T> {
        let steps = (!plans.is_empty()).then(|| (plans.iter().copied(), *step));
        self.run_each_and_read(steps, result, len)
    }

    /// Like [`Gpu::run_and_read`], but copies rows of `row` values each: those of `rows`, in that
    /// order.
    pub fn run_and_read_rows<T: Pod>(
        &self,
        plans: &[&Plan],
        step: &Step,
        result: &Buffer<T>,
        row: usize,
        rows: &[usize],
    ) -> Readback<T> {
        let mut commands = Commands::new(self);
        commands.run([(plans.iter().copied(), *step)]);
        let row = (row * size_of::<T>()) as u64;
        let bytes =
            |run: Range<usize>| (result.offset + run.start as u64 * row, run.len() as u64 * row);
        self.submit_and_read_each(commands.end(), &result.raw, runs(rows).map(bytes))
    }

    /// Like [`Gpu::run_and_read`], but submits the first dispatches at once, so that the GPU works
    /// on them while the others are encoded. For a step that follows no other step.
    pub fn run_at_once_and_read<T: Pod>(
        &self,
        plans: &[&Plan],
        step: &Step,
        result: &Buffer<T>,
        len: usize,
    ) -> Readback<T> {
        let mut rest: Vec<_> = plans.iter().flat_map(|plan| plan.parts()).collect();
        let mut commands = Commands::new(self);
        let mut part = FIRST_PART;
        loop {
            for (portions, dispatch) in rest.drain(..part.min(rest.len())) {
                commands.bring(portions, step);
                dispatch.encode(commands.pass(), step, 0);
            }
            if rest.is_empty() {
                let bytes = (len * size_of::<T>()) as u64;
                return self.submit_and_read(commands.end(), (&result.raw, result.offset), bytes);
            }
            commands.submit();
            part *= 2;
        }
    }

    /// Runs the plans of one step after the other, and copies once all are done.
    pub fn run_each_and_read<'a, T: Pod, P: IntoIterator<Item = &'a Plan>>(
        &self,
        steps: impl IntoIterator<Item = (P, Step)>,
        result: &Buffer<T>,
        len: usize,
    ) -> Readback<T> {
        let mut commands = Commands::new(self);
        commands.run(steps);
        self.submit_and_read(
            commands.end(),
            (&result.raw, result.offset),
            (len * size_of::<T>()) as u64,
        )
    }

    /// Submits `encoder`'s work and a copy of `size` bytes of `result`, from the given byte on.
    pub(super) fn submit_and_read<T: Pod>(
        &self,
        encoder: wgpu::CommandEncoder,
        (result, at): (&wgpu::Buffer, u64),
        size: u64,
    ) -> Readback<T> {
        self.submit_and_read_each(encoder, result, [(at, size)].into_iter())
    }

    /// Submits `encoder`'s work and copies of `result`: each the first byte and the number of bytes.
    fn submit_and_read_each<T: Pod>(
        &self,
        mut encoder: wgpu::CommandEncoder,
        result: &wgpu::Buffer,
        copies: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Readback<T> {
        let size = copies.clone().map(|copy| copy.1).sum();
        let (staging, mut end) = (self.staging(size), 0);
        for (at, size) in copies {
            encoder.copy_buffer_to_buffer(result, at, &staging, end, size);
            end += size;
        }
        let (tell, mapped) = oneshot::channel();
        let submission = Submission::default();
        let ticket = self.ordered.give(Work::Read {
            commands: encoder.finish(),
            staging: staging.clone(),
            size,
            tell,
            submission: submission.clone(),
        });
        Readback {
            link: Link::clone(self),
            staging,
            size,
            mapped,
            ticket,
            submission,
            marker: PhantomData,
        }
    }

    /// For each of `copies`, copies `len` values from an index of one buffer to an index of
    /// another.
    pub fn copy<'a, T: Pod>(
        &self,
        copies: impl IntoIterator<Item = [(&'a Buffer<T>, usize); 2]>,
        len: usize,
    ) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let bytes = |n: usize| (n * size_of::<T>()) as u64;
        for [(from, at), (to, to_at)] in copies {
            let [at, to_at] = [from.offset + bytes(at), to.offset + bytes(to_at)];
            encoder.copy_buffer_to_buffer(&from.raw, at, &to.raw, to_at, bytes(len));
        }
        self.ordered.give(Work::Submit(encoder.finish()));
    }

    /// A buffer of `size` bytes or more that can be mapped. Small ones are used again.
    fn staging(&self, size: u64) -> wgpu::Buffer {
        let size = size.next_multiple_of(STAGING);
        let mut idle = self.idle_staging.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.iter().position(|buffer| buffer.size() == size) {
            Some(index) => idle.swap_remove(index),
            None => self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("readback"),
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        }
    }

    /// The values that `work` computes; `None` if WebGPU refuses something in it. Its errors do not
    /// count as errors of the device.
    ///
    /// Errors: `device-lost`.
    pub async fn try_read<T: Pod>(
        &self,
        work: impl FnOnce() -> Readback<T>,
    ) -> Result<Option<Vec<T>>> {
        let begun = self.faults.unless_gone(attempt(&self.device, work)).await;
        let Some(readback) = begun.flatten() else {
            return self.check().map(|()| None);
        };
        readback.take().await.map(Some)
    }

    /// All values of `buffer`.
    pub async fn read<T: Pod>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        self.run_and_read(&[], &Step::default(), buffer, buffer.len()).take().await
    }
}

/// Neighbours in `rows` as one range: in a browser each copy is a call, and a pass has a thousand rows.
fn runs(rows: &[usize]) -> impl Iterator<Item = Range<usize>> + Clone {
    rows.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len())
}

impl<T: Pod> Readback<T> {
    /// Waits for the values. A native wait blocks the thread, after its other tasks have run once.
    pub async fn take(self) -> Result<Vec<T>> {
        let gpu = &self.link;
        let failed = |why: &str| gpu.faults.failed(&format!("its results could not be read{why}"));
        #[cfg(not(target_arch = "wasm32"))]
        let_others_run().await;
        let _ = gpu.faults.unless_gone(gpu.ordered.reach(self.ticket)).await;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(submission) = self.submission.get().cloned() {
            gpu.device
                .poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout: None })
                .map_err(|error| failed(&format!(" ({error})")))?;
        }
        let outcome = gpu.faults.unless_gone(self.mapped).await;
        gpu.check()?;
        // wgpu's error says only that it failed.
        let Some(Ok(Ok(()))) = outcome else { return Err(failed("")) };
        let view = self
            .staging
            .slice(..self.size)
            .get_mapped_range()
            .map_err(|error| failed(&format!(" ({error})")))?;
        // The mapping need not be aligned for T, so the values are copied one by one.
        let values = view.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
        drop(view);
        self.staging.unmap();
        if self.staging.size() <= MAX_KEPT {
            let mut idle = gpu.idle_staging.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(self.staging);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn rows_that_follow_each_other_are_one_copy() {
        let found = |rows: &[usize]| runs(rows).collect::<Vec<_>>();
        assert_eq!(found(&[2, 3, 4, 9, 8, 9, 0]), [2..5, 9..10, 8..10, 0..1]);
        assert_eq!(found(&[5, 7]), [5..6, 7..8]);
        assert_eq!(found(&[1, 1]), [1..2, 1..2]);
        assert!(found(&[]).is_empty());
    }
}
