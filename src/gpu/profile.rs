//! Profiles measure each dispatch of a step between two timestamps of the GPU's own clock.

use super::commands::Commands;
use super::{Gpu, Plan, Step};
use crate::compute::KernelTime;
use crate::error::{Error, Result};

impl Gpu {
    /// Runs `plans` with every dispatch in a compute pass of its own, and times each. Gives the time and the
    /// bytes of each kernel; [`Profile`](crate::compute::Profile) has their rates.
    ///
    /// The times leave out the passes' own cost, and the gain of dispatches that overlap.
    ///
    /// Errors: `missing-feature` without timestamp queries.
    pub async fn profile(&self, plans: &[&Plan], step: &Step) -> Result<Vec<KernelTime>> {
        if !self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Err(Error::MissingFeature("the GPU adapter has no timestamp queries".into()));
        }
        let dispatches: Vec<_> = plans.iter().flat_map(|plan| plan.parts()).collect();
        let count = 2 * dispatches.len() as u32;
        let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("profile"),
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let size = u64::from(count) * 8;
        let ticks = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("profile"),
            size,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let mut commands = Commands::new(self);
        for (i, (portions, dispatch)) in (0..).zip(&dispatches) {
            commands.bring(portions, step);
            let mut pass = commands.encoder().begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some(&dispatch.label),
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: Some(2 * i),
                    end_of_pass_write_index: Some(2 * i + 1),
                }),
            });
            dispatch.encode(&mut pass, step, 0);
        }
        let mut encoder = commands.end();
        encoder.resolve_query_set(&queries, 0..count, &ticks, 0);
        let values: Vec<u64> = self.submit_and_read(encoder, (&ticks, 0), size).take().await?;
        let period = f64::from(self.queue.get_timestamp_period());
        let mut kernels: Vec<KernelTime> = Vec::new();
        for ((_, dispatch), ticks) in dispatches.iter().zip(values.chunks_exact(2)) {
            let microseconds = ticks[1].saturating_sub(ticks[0]) as f64 * period / 1e3;
            let index = kernels.iter().position(|k| k.kernel == dispatch.label);
            let index = index.unwrap_or_else(|| {
                kernels
                    .push(KernelTime { kernel: dispatch.label.clone(), ..KernelTime::default() });
                kernels.len() - 1
            });
            kernels[index].calls += 1;
            kernels[index].microseconds += microseconds;
            kernels[index].bytes += dispatch.bytes(step);
        }
        Ok(kernels)
    }
}
