//! Mapped buffers through which portions of the weights are uploaded, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use super::mapped::{Mapped, Waiting};

/// The most bytes of a staging buffer.
const MAX_SIZE: u64 = 2 << 20;

/// The most staging buffers. They limit the data in flight.
const MOST: u64 = 8;

/// The staging buffers, in the order in which the GPU copies them.
#[derive(Default)]
pub(super) struct Ring {
    in_flight: VecDeque<Staging>,
    /// Bytes of each.
    size: u64,
}

/// A staging buffer, and when it was submitted.
pub(super) struct Staging {
    buffer: wgpu::Buffer,
    mapped: Mapped,
    submission: Option<wgpu::SubmissionIndex>,
}

/// Bytes of all staging buffers for portions of at most `portion` bytes.
pub fn staged(portion: u64) -> u64 {
    MOST * size(portion)
}

/// Bytes of a staging buffer: all of them hold two portions, if they are small.
fn size(portion: u64) -> u64 {
    (2 * portion / MOST).next_multiple_of(256).min(MAX_SIZE)
}

impl Ring {
    /// For portions of at most `portion` bytes.
    pub(super) fn of(portion: u64) -> Self {
        Self { in_flight: VecDeque::new(), size: size(portion) }
    }

    /// Bytes of a staging buffer.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.in_flight.len() as u64 * self.size
    }

    /// An empty staging buffer, if there is one now. If it `waits`, a native call waits for one.
    pub(super) fn free(&mut self, device: &wgpu::Device, waits: bool) -> Option<Staging> {
        if (self.in_flight.len() as u64) < MOST {
            let buffer = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("staging"),
                size: self.size,
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            });
            return Some(Staging { buffer, mapped: Mapped::already(), submission: None });
        }
        let first = self.in_flight.front()?;
        wait_for(device, &first.mapped, first.submission.as_ref(), waits);
        if !first.mapped.has_ended() {
            return None;
        }
        self.in_flight.pop_front()
    }

    /// Submits a copy of the first `len` bytes of `staging` to `to`, from byte `at` on. Then `staging` is mapped again.
    pub(super) fn submit(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        staging: Staging,
        (to, at, len): (&wgpu::Buffer, u64, u64),
        waiting: &Arc<Waiting>,
    ) {
        let Staging { buffer, .. } = staging;
        buffer.unmap();
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&buffer, 0, to, at, len);
        let submission = Some(queue.submit([encoder.finish()]));
        let mapped = Mapped::begin(&buffer, wgpu::MapMode::Write, waiting);
        self.in_flight.push_back(Staging { buffer, mapped, submission });
    }
}

impl Drop for Ring {
    /// Otherwise a browser would keep them until it collects garbage.
    fn drop(&mut self) {
        self.in_flight.iter().for_each(|staging| staging.buffer.destroy());
    }
}

impl Staging {
    /// The buffer, which is mapped.
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

/// Lets the device tell that a buffer is mapped. If it `waits`, a native call waits for it. A browser tells it
/// by itself.
pub(super) fn wait_for(
    device: &wgpu::Device,
    mapped: &Mapped,
    submission: Option<&wgpu::SubmissionIndex>,
    waits: bool,
) {
    if cfg!(target_arch = "wasm32") || mapped.has_ended() {
        return;
    }
    // An error of it is a lost device, which its callback tells.
    let _ = device.poll(if waits {
        wgpu::PollType::Wait { submission_index: submission.cloned(), timeout: None }
    } else {
        wgpu::PollType::Poll
    });
}
