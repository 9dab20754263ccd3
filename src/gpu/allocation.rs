//! Buffers: how they are asked for, packed, and refused.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use bytemuck::Pod;

use super::{Buffer, Gpu};
use crate::error::{Error, Result};

/// What small buffers are packed into. Below 4 MiB, Chromium (Dawn) rounds an allocation up to a power
/// of two: buffer by buffer, the layers of BitNet 2B-4T took 74 MiB more than they hold.
const ARENA: u64 = 8 << 20;
/// Buffers from here on are their own allocation, as large as they are.
const LARGE: u64 = 4 << 20;
/// Where a binding may begin: WebGPU's default for `minStorageBufferOffsetAlignment`.
const ALIGNMENT: u64 = 256;

/// What [`Gpu::allocating`] and [`Gpu::packing`] watch.
pub(super) struct Orders {
    /// The bytes of each allocation, and the answer to come.
    answers: Vec<(u64, Pin<Box<Answer>>)>,
    /// Whether small buffers share allocations, and those that have room.
    arenas: Option<Vec<Arena>>,
}

#[cfg(not(target_arch = "wasm32"))]
type Answer = dyn Future<Output = Option<wgpu::Error>> + Send;
#[cfg(target_arch = "wasm32")]
type Answer = dyn Future<Output = Option<wgpu::Error>>;

struct Arena {
    raw: wgpu::Buffer,
    used: u64,
}

impl Gpu {
    /// A zeroed buffer of `len` values.
    pub fn buffer<T: Pod>(&self, label: &str, len: usize) -> Buffer<T> {
        // Bindings and copies come in words of 4 bytes, and an empty binding is not allowed.
        let size = ((len * size_of::<T>()).max(16) as u64).next_multiple_of(16);
        if size > self.max_binding {
            // Found by `check`, like all that a device refuses.
            let (what, granted) = (format!("`{label}` in one binding"), self.max_binding);
            self.faults.note(Error::OutOfMemory { what, needed: size, granted });
        }
        let (raw, at) = match &mut *self.orders() {
            None => (self.create(label, size), 0),
            Some(orders) => orders.place(self, label, size),
        };
        Buffer::new(raw, at, size, len)
    }

    /// Runs `allocate`, and turns the device's refusal of any of its buffers into `out-of-memory`
    /// for `what`, with the bytes of all buffers of this device, and of those it did give.
    pub async fn allocating<T>(&self, what: &str, allocate: impl FnOnce() -> T) -> Result<T> {
        self.watching(what, None, allocate).await
    }

    /// Like [`Gpu::allocating`], with small buffers packed into few allocations. A kernel that
    /// writes one of them must not be given another: WebGPU forbids to read a buffer that is written.
    pub async fn packing<T>(&self, what: &str, allocate: impl FnOnce() -> T) -> Result<T> {
        self.watching(what, Some(Vec::new()), allocate).await
    }

    async fn watching<T>(
        &self,
        what: &str,
        arenas: Option<Vec<Arena>>,
        allocate: impl FnOnce() -> T,
    ) -> Result<T> {
        *self.orders() = Some(Orders { answers: Vec::new(), arenas });
        let value = allocate();
        let orders = self.orders().take();
        let mut refused = 0;
        for (size, answer) in orders.into_iter().flat_map(|orders| orders.answers) {
            refused += if answer.await.is_some() { size } else { 0 };
        }
        if refused > 0 && !self.is_lost() {
            let needed = self.allocated();
            let (what, granted) = (what.into(), needed - refused);
            return Err(Error::OutOfMemory { what, needed, granted });
        }
        self.check().map(|()| value)
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

    fn orders(&self) -> MutexGuard<'_, Option<Orders>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    /// A buffer with `size` bytes to spare, and where they begin.
    fn place(&mut self, gpu: &Gpu, label: &str, size: u64) -> (wgpu::Buffer, u64) {
        let arena = ARENA.min(gpu.max_buffer);
        let Some(arenas) = self.arenas.as_mut().filter(|_| size < LARGE.min(arena)) else {
            return (self.create(gpu, label, size), 0);
        };
        let end = |arena: &Arena| arena.used.next_multiple_of(ALIGNMENT) + size;
        if let Some(place) = arenas.iter_mut().find(|place| end(place) <= arena) {
            let at = end(place) - size;
            place.used = at + size;
            return (place.raw.clone(), at);
        }
        let raw = self.create(gpu, "weights", arena);
        self.arenas.get_or_insert_default().push(Arena { raw: raw.clone(), used: size });
        (raw, 0)
    }

    fn create(&mut self, gpu: &Gpu, label: &str, size: u64) -> wgpu::Buffer {
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let raw = gpu.create(label, size);
        self.answers.push((size, Box::pin(scope.pop())));
        raw
    }
}
