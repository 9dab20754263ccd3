use std::marker::PhantomData;
use std::num::NonZero;

/// A GPU buffer of `len` values of `T`, or a part of a larger one. Cloning copies the handle, not the
/// contents.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    pub(super) raw: wgpu::Buffer,
    /// The byte of `raw` at which this begins.
    pub(super) at: u64,
    size: u64,
    len: usize,
    marker: PhantomData<T>,
}

impl<T> Buffer<T> {
    pub(super) fn new(raw: wgpu::Buffer, at: u64, size: u64, len: usize) -> Self {
        Self { raw, at, size, len, marker: PhantomData }
    }

    /// Values in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on the GPU.
    pub fn bytes(&self) -> u64 {
        self.size
    }

    /// The same bytes as values of another type, for a kernel that loads them otherwise.
    pub fn cast<U>(&self) -> Buffer<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        Buffer::new(self.raw.clone(), self.at, self.size, len)
    }

    pub(super) fn binding(&self) -> wgpu::BindingResource<'_> {
        let size = NonZero::new(self.size);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.raw,
            offset: self.at,
            size,
        })
    }
}
