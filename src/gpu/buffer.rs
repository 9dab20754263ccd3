use std::marker::PhantomData;

/// A GPU buffer of `len` values of `T`. Cloning copies the handle, not the contents.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    pub(super) raw: wgpu::Buffer,
    len: usize,
    marker: PhantomData<T>,
}

impl<T> Buffer<T> {
    pub(super) fn new(raw: wgpu::Buffer, len: usize) -> Self {
        Self { raw, len, marker: PhantomData }
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
        self.raw.size()
    }

    /// The same bytes as values of another type, for a kernel that loads them otherwise.
    pub fn cast<U>(&self) -> Buffer<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        Buffer::new(self.raw.clone(), len)
    }
}
