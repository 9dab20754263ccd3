//! How buffers are allocated, packed, and refused.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use bytemuck::Pod;

use super::{Buffer, Gpu};
use crate::error::{Error, Result};

/// The size of an arena, which holds small buffers. Dawn, in Chromium, rounds an allocation below 4
/// MiB up to a power of two. When each buffer had its own allocation, the layers of BitNet 2B-4T
/// took 74 MiB more than they hold.
const ARENA: u64 = 8 << 20;
/// Buffers of at least this size have their own allocations.
const LARGE: u64 = 4 << 20;
/// Bindings begin at multiples of this: WebGPU's default for `minStorageBufferOffsetAlignment`.
const ALIGNMENT: u64 = 256;

/// Buffers that are asked for together, by [`Gpu::allocating`] or [`Gpu::packing`].
pub struct Allocation<'gpu> {
    gpu: &'gpu Gpu,
    /// The bytes of each buffer, and the answer that the device will give.
    answers: Vec<(u64, Pin<Box<ScopeEnd>>)>,
    /// The arenas, if small buffers share them.
    arenas: Option<Vec<Arena>>,
}

#[cfg(not(target_arch = "wasm32"))]
type ScopeEnd = dyn Future<Output = Option<wgpu::Error>> + Send;
#[cfg(target_arch = "wasm32")]
type ScopeEnd = dyn Future<Output = Option<wgpu::Error>>;

struct Arena {
    raw: wgpu::Buffer,
    used: u64,
}

impl Gpu {
    /// A zeroed buffer of `len` values, in an allocation of its own.
    pub fn buffer<T: Pod>(&self, label: &str, len: usize) -> Buffer<T> {
        let size = self.size_of_buffer::<T>(label, len);
        Buffer::new(self.create(label, size), 0, size, len)
    }

    /// Runs `allocate`, which asks for its buffers.
    ///
    /// Errors: `out-of-memory` for `what`, if the device refuses any of them. The error names the
    /// bytes of all buffers of this device, and the bytes that the device has given.
    pub async fn allocating<T>(
        &self,
        what: &str,
        allocate: impl FnOnce(&mut Allocation<'_>) -> T,
    ) -> Result<T> {
        self.allocate(what, None, allocate).await
    }

    /// Like [`Gpu::allocating`], but packs small buffers into few allocations. No kernel may write
    /// one of them while it reads another, because WebGPU forbids to do both in one allocation.
    pub async fn packing<T>(
        &self,
        what: &str,
        allocate: impl FnOnce(&mut Allocation<'_>) -> T,
    ) -> Result<T> {
        self.allocate(what, Some(Vec::new()), allocate).await
    }

    async fn allocate<T>(
        &self,
        what: &str,
        arenas: Option<Vec<Arena>>,
        allocate: impl FnOnce(&mut Allocation<'_>) -> T,
    ) -> Result<T> {
        let mut allocation = Allocation { gpu: self, answers: Vec::new(), arenas };
        let value = allocate(&mut allocation);
        let mut refused = 0;
        for (size, answer) in allocation.answers {
            let answer = self.faults.unless_gone(answer).await;
            refused += if answer.flatten().is_some() { size } else { 0 };
        }
        if refused > 0 && !self.is_lost() {
            let needed = self.allocated();
            let (what, granted) = (what.into(), needed - refused);
            return Err(Error::OutOfMemory { what, needed, granted });
        }
        self.check().map(|()| value)
    }

    /// The bytes of a buffer of `len` values. If they exceed a binding, the next `check` fails, as
    /// it does for everything that a device refuses.
    fn size_of_buffer<T: Pod>(&self, label: &str, len: usize) -> u64 {
        // The size must be a multiple of 4 bytes for bindings and copies, and a binding may not be
        // empty.
        let size = ((len * size_of::<T>()).max(16) as u64).next_multiple_of(16);
        if size > self.max_binding {
            let (what, granted) = (format!("`{label}` in one binding"), self.max_binding);
            self.faults.note(Error::OutOfMemory { what, needed: size, granted });
        }
        size
    }

    fn create(&self, label: &str, size: u64) -> wgpu::Buffer {
        self.allocated.fetch_add(size, Ordering::Relaxed);
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::UNIFORM
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }
}

impl<'gpu> Allocation<'gpu> {
    /// The device that allocates.
    pub fn gpu(&self) -> &'gpu Gpu {
        self.gpu
    }

    /// A zeroed buffer of `len` values.
    pub fn buffer<T: Pod>(&mut self, label: &str, len: usize) -> Buffer<T> {
        let size = self.gpu.size_of_buffer::<T>(label, len);
        let (raw, offset) = self.take(label, size);
        Buffer::new(raw, offset, size, len)
    }

    /// `size` free bytes: their allocation, and the offset at which they begin in it.
    fn take(&mut self, label: &str, size: u64) -> (wgpu::Buffer, u64) {
        let arena = ARENA.min(self.gpu.max_buffer);
        let Some(arenas) = self.arenas.as_mut().filter(|_| size < LARGE.min(arena)) else {
            return (self.create(label, size), 0);
        };
        let end = |arena: &Arena| arena.used.next_multiple_of(ALIGNMENT) + size;
        if let Some(free) = arenas.iter_mut().find(|free| end(free) <= arena) {
            let offset = end(free) - size;
            free.used = offset + size;
            return (free.raw.clone(), offset);
        }
        let raw = self.create("weights", arena);
        self.arenas.get_or_insert_default().push(Arena { raw: raw.clone(), used: size });
        (raw, 0)
    }

    fn create(&mut self, label: &str, size: u64) -> wgpu::Buffer {
        let scope = self.gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let raw = self.gpu.create(label, size);
        self.answers.push((size, Box::pin(scope.pop())));
        raw
    }
}
