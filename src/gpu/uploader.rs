//! Uploads much data through mapped buffers, which are used again and again.
//!
//! `writeBuffer` takes new memory from the browser for every write, and taking new memory costs
//! more than the copy into it.

use std::collections::VecDeque;

use bytemuck::Pod;
use futures_channel::oneshot;

use super::{Buffer, Link, Portion};
use crate::error::{Error, Result};

/// Bytes of a staging buffer.
const STAGING: u64 = 1 << 20;

/// The most staging buffers. They limit the data in flight. Otherwise data that is written faster
/// than it arrives would pile up.
const MOST: usize = 6;

/// Uploads much data. Its last bytes are submitted by [`Uploader::submit`].
pub struct Uploader {
    link: Link,
    /// The staging buffer that is being filled now.
    filling: Option<Filling>,
    /// The other staging buffers, in the order in which the GPU copies them.
    in_flight: VecDeque<InFlight>,
}

/// A mapped staging buffer, and the copies that will be made of its contents.
struct Filling {
    staging: wgpu::Buffer,
    filled: u64,
    encoder: wgpu::CommandEncoder,
}

/// A staging buffer that will be mapped again after the GPU has copied its contents.
struct InFlight {
    staging: wgpu::Buffer,
    mapped: oneshot::Receiver<std::result::Result<(), wgpu::BufferAsyncError>>,
}

impl Uploader {
    /// An uploader to the device of `link`.
    pub fn new(link: &Link) -> Self {
        Self { link: link.clone(), filling: None, in_flight: VecDeque::new() }
    }

    /// Writes `data` from element `at` of `buffer` on. Both ends must be multiples of 4 bytes.
    /// Waits while too many bytes are in flight. A buffer in a portion of the weights is written in main memory.
    ///
    /// Errors: `device-lost`, `storage` if the browser's storage has the portion and cannot take it, and errors that the
    /// device reported by itself.
    pub async fn write<T: Pod>(&mut self, buffer: &Buffer<T>, at: usize, data: &[T]) -> Result<()> {
        let mut to = buffer.offset + (at * size_of::<T>()) as u64;
        let mut rest: &[u8] = bytemuck::cast_slice(data);
        if let Some(Portion::InBay(portion) | Portion::Kept(portion)) = buffer.portion() {
            let written = self.link.ordered.portions(|portions| portions.write(portion, to, rest));
            return written.map_err(|why| Error::Storage(format!("weights were not kept: {why}")));
        }
        while !rest.is_empty() {
            let mut filling = match self.filling.take() {
                Some(filling) => filling,
                None => self.next().await?,
            };
            let (now, later) = rest.split_at(rest.len().min(filling.room()));
            filling
                .push(now, (&buffer.raw, to))
                .map_err(|why| self.failed(&format!(" ({why})")))?;
            (rest, to) = (later, to + now.len() as u64);
            let is_full = filling.room() == 0;
            self.filling = Some(filling);
            if is_full {
                self.submit();
            }
        }
        Ok(())
    }

    /// Submits all that was written. It is done before any later work.
    pub fn submit(&mut self) {
        let Some(Filling { staging, encoder, .. }) = self.filling.take() else { return };
        staging.unmap();
        self.link.queue.submit([encoder.finish()]);
        let (tell, mapped) = oneshot::channel();
        staging.slice(..).map_async(wgpu::MapMode::Write, move |outcome| {
            // This fails if the uploader was dropped after its last bytes.
            let _ = tell.send(outcome);
        });
        self.in_flight.push_back(InFlight { staging, mapped });
    }

    /// An empty staging buffer: a new one, or the first one that the GPU has copied.
    async fn next(&mut self) -> Result<Filling> {
        self.link.check()?;
        let free = if self.in_flight.len() < MOST { None } else { self.in_flight.pop_front() };
        let staging = match free {
            None => self.link.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("upload"),
                size: STAGING,
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            }),
            Some(InFlight { staging, mapped }) => {
                #[cfg(not(target_arch = "wasm32"))]
                let _ = self.link.device.poll(wgpu::PollType::wait_indefinitely());
                let outcome = self.link.faults.unless_gone(mapped).await;
                self.link.check()?;
                // wgpu's error says only that it failed.
                if !matches!(outcome, Some(Ok(Ok(())))) {
                    return Err(self.failed(""));
                }
                staging
            }
        };
        let encoder = self.link.device.create_command_encoder(&Default::default());
        Ok(Filling { staging, filled: 0, encoder })
    }

    fn failed(&self, why: &str) -> Error {
        self.link.faults.failed(&format!("the model could not be uploaded{why}"))
    }
}

impl Filling {
    fn room(&self) -> usize {
        (STAGING - self.filled) as usize
    }

    /// Copies `bytes` into the staging buffer, and from there to byte `at` of another buffer. Fails
    /// if the staging buffer is not mapped any more.
    fn push(&mut self, bytes: &[u8], (to, at): (&wgpu::Buffer, u64)) -> Result<(), String> {
        fill(&self.staging, self.filled, bytes)?;
        let len = bytes.len() as u64;
        self.encoder.copy_buffer_to_buffer(&self.staging, self.filled, to, at, len);
        self.filled = (self.filled + len).next_multiple_of(wgpu::MAP_ALIGNMENT);
        Ok(())
    }
}

impl Drop for Uploader {
    /// Frees the staging buffers once the GPU has copied them. Otherwise a browser would keep them
    /// until it collects garbage.
    fn drop(&mut self) {
        let filling = self.filling.take().map(|filling| filling.staging);
        let in_flight = self.in_flight.drain(..).map(|in_flight| in_flight.staging);
        in_flight.chain(filling).for_each(|staging| staging.destroy());
    }
}

/// Copies `bytes` into a mapped buffer from byte `at` on.
#[cfg(not(target_arch = "wasm32"))]
fn fill(mapped: &wgpu::Buffer, at: u64, bytes: &[u8]) -> Result<(), String> {
    let range = at..at + bytes.len() as u64;
    let mut view = mapped.get_mapped_range_mut(range).map_err(|error| error.to_string())?;
    view.copy_from_slice(bytes);
    Ok(())
}

/// Copies `bytes` into a mapped buffer from byte `at` on. wgpu would copy them two more times.
#[cfg(target_arch = "wasm32")]
fn fill(mapped: &wgpu::Buffer, at: u64, bytes: &[u8]) -> Result<(), String> {
    let len = bytes.len() as f64;
    let mapped = mapped.as_webgpu().ok_or("it is no buffer of WebGPU")?;
    let range = mapped
        .get_mapped_range_with_f64_and_f64(at as f64, len)
        .map_err(|error| format!("{error:?}"))?;
    js_sys::Uint8Array::new(&range).copy_from(bytes);
    Ok(())
}
