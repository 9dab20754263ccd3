//! How buffers are allocated, packed, and refused.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use bytemuck::Pod;

use super::kept::Kept;
use super::portions::Portions;
use super::{Buffer, Gpu, Portion};
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
    /// If buffers are only measured: the one that stands for all of them, and their bytes.
    measured: Option<(wgpu::Buffer, u64)>,
    /// The portion whose buffers are asked for now.
    open: Option<Open>,
    /// The bay and the bytes of each portion.
    portions: Vec<(Option<usize>, u64)>,
    /// The bays that portions take in turn.
    bays: Vec<wgpu::Buffer>,
}

/// A portion while its buffers are asked for.
struct Open {
    portion: Portion,
    /// The bay, and its bytes that are taken.
    bay: Arena,
}

/// Where a portion goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// To a bay, the next one in turn.
    InTurn,
    /// Nowhere: it stays in main memory.
    Nowhere,
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
        let mut allocation = Allocation::new(self, arenas);
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
        self.check()?;
        let (to, lens): (Vec<_>, Vec<_>) = allocation.portions.into_iter().unzip();
        let kept = Kept::zeros(lens).await?;
        self.ordered.add_portions(allocation.bays, to.into_iter().zip(kept));
        Ok(value)
    }

    /// The bytes that [`Gpu::packing`], or else [`Gpu::allocating`], would take for the same buffers, and
    /// what `allocate` makes of them. No kernel may use these buffers: they stand in for real ones.
    pub fn measuring<T>(
        &self,
        packs: bool,
        allocate: impl FnOnce(&mut Allocation<'_>) -> T,
    ) -> (T, u64) {
        let mut allocation = Allocation::new(self, packs.then(Vec::new));
        let size = 16;
        let nothing = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("nothing"),
            size,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        allocation.measured = Some((nothing, 0));
        let value = allocate(&mut allocation);
        let bytes = allocation.measured.map_or(0, |(nothing, bytes)| {
            nothing.destroy();
            bytes
        });
        (value, bytes)
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

    /// Remembers all buffers that will be made, until [`Gpu::keep_made`].
    pub fn watch_made(&self) {
        *self.made() = Some(Vec::new());
    }

    /// Keeps all buffers that were made since [`Gpu::watch_made`].
    pub fn keep_made(&self) {
        *self.made() = None;
    }

    /// Frees all buffers that were made since [`Gpu::watch_made`], and forgets all portions. Nothing uses them.
    pub fn free_made(&self) {
        for raw in self.made().iter_mut().flat_map(|made| made.drain(..)) {
            self.allocated.fetch_sub(raw.size(), Ordering::Relaxed);
            raw.destroy();
        }
        self.ordered.portions(Portions::clear);
    }

    fn made(&self) -> MutexGuard<'_, Option<Vec<wgpu::Buffer>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(&self, label: &str, size: u64) -> wgpu::Buffer {
        self.allocated.fetch_add(size, Ordering::Relaxed);
        let raw = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::UNIFORM
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        if let Some(made) = &mut *self.made() {
            made.push(raw.clone());
        }
        raw
    }
}

impl<'gpu> Allocation<'gpu> {
    fn new(gpu: &'gpu Gpu, arenas: Option<Vec<Arena>>) -> Self {
        let (answers, portions) = (Vec::new(), Vec::new());
        Self { gpu, answers, arenas, measured: None, open: None, portions, bays: Vec::new() }
    }

    /// The device that allocates.
    pub fn gpu(&self) -> &'gpu Gpu {
        self.gpu
    }

    /// A zeroed buffer of `len` values.
    pub fn buffer<T: Pod>(&mut self, label: &str, len: usize) -> Buffer<T> {
        let size = self.gpu.size_of_buffer::<T>(label, len);
        let portion = self.open.as_ref().map(|open| open.portion);
        let (raw, offset) = match &mut self.open {
            Some(Open { bay, .. }) => bay.take(size),
            None => self.take(label, size),
        };
        Buffer::new(raw, offset, size, len).in_portion(portion)
    }

    /// Makes `n` bays of `size` bytes each, for the portions that go to bays in turn.
    pub fn bays(&mut self, n: usize, size: u64) {
        self.bays = (0..n).map(|_| self.create("bay", size)).collect();
    }

    /// Makes `allocate` ask for its buffers in a portion of the weights. Gives its bytes too.
    pub fn portion<T>(&mut self, goes: Goes, allocate: impl FnOnce(&mut Self) -> T) -> (T, u64) {
        let n = self.portions.len();
        // The portions of a model are alternately in its bays.
        let in_bays = self.portions.iter().filter(|portion| portion.0.is_some()).count();
        let bay = match goes {
            Goes::InTurn => in_bays.checked_rem(self.bays.len()),
            Goes::Nowhere => None,
        };
        let portion = if goes == Goes::InTurn { Portion::InBay(n) } else { Portion::Kept(n) };
        let raw = match bay {
            Some(bay) => self.bays[bay].clone(),
            // No kernel binds it, but a buffer has to be one.
            None => self.create("nothing", 16),
        };
        self.open = Some(Open { portion, bay: Arena { raw, used: 0 } });
        let value = allocate(self);
        let bytes = self.open.take().map_or(0, |open| open.bay.used);
        self.portions.push((bay, bytes));
        (value, bytes)
    }

    /// `size` free bytes: their allocation, and the offset at which they begin in it.
    fn take(&mut self, label: &str, size: u64) -> (wgpu::Buffer, u64) {
        let arena = ARENA.min(self.gpu.max_buffer);
        let Some(arenas) = self.arenas.as_mut().filter(|_| size < LARGE.min(arena)) else {
            return (self.create(label, size), 0);
        };
        if let Some(free) = arenas.iter_mut().find(|free| free.end(size) <= arena) {
            return free.take(size);
        }
        let raw = self.create("weights", arena);
        self.arenas.get_or_insert_default().push(Arena { raw: raw.clone(), used: size });
        (raw, 0)
    }

    fn create(&mut self, label: &str, size: u64) -> wgpu::Buffer {
        if let Some((nothing, bytes)) = &mut self.measured {
            *bytes += size;
            return nothing.clone();
        }
        let scope = self.gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let raw = self.gpu.create(label, size);
        self.answers.push((size, Box::pin(scope.pop())));
        raw
    }
}

impl Arena {
    /// The bytes that are taken once `size` more are.
    fn end(&self, size: u64) -> u64 {
        self.used.next_multiple_of(ALIGNMENT) + size
    }

    fn take(&mut self, size: u64) -> (wgpu::Buffer, u64) {
        let offset = self.end(size) - size;
        self.used = offset + size;
        (self.raw.clone(), offset)
    }
}
