use std::marker::PhantomData;
use std::num::NonZero;

use super::Portion;

/// A GPU buffer of `len` values of `T`, or a range of a larger one. Clones share its contents.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    pub(super) raw: wgpu::Buffer,
    /// The byte of `raw` at which this buffer begins.
    pub(super) offset: u64,
    size: u64,
    len: usize,
    used: Used,
    portion: Option<Portion>,
    marker: PhantomData<T>,
}

/// How many bytes of a buffer a kernel reads or writes in one step. Profiles compute rates from
/// this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// The same number in every step.
    Fixed(u64),
    /// So many for each token of the step.
    Tokens(u64),
    /// So many for each token of the step and each split of the context.
    Splits(u64),
    /// So many for each position of the KV cache. A kernel that reads the buffer reads all filled
    /// positions. A kernel that writes it writes the positions of the step's tokens.
    Positions(u64),
    /// So many for each filled position of the KV cache, for a kernel that reads all of them
    /// although it writes the buffer too.
    Filled(u64),
}

impl<T> Buffer<T> {
    pub(super) fn new(raw: wgpu::Buffer, offset: u64, size: u64, len: usize) -> Self {
        let used = Used::Fixed((len * size_of::<T>()) as u64);
        Self { raw, offset, size, len, used, portion: None, marker: PhantomData }
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

    /// The same bytes as values of another type, for a kernel that loads them as that type.
    pub fn cast<U>(&self) -> Buffer<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        let Self { offset, size, used, portion, .. } = *self;
        Buffer { used, portion, ..Buffer::new(self.raw.clone(), offset, size, len) }
    }

    /// The first `n` values.
    pub fn first(&self, n: usize) -> Self {
        self.part(0, n)
    }

    /// `n` values from number `at` on. A binding has to begin at a multiple of 256 bytes.
    pub fn range(&self, at: usize, n: usize) -> Self {
        self.part(at, n)
    }

    /// The last `n` values.
    pub fn last(&self, n: usize) -> Self {
        self.part(self.len - n, n)
    }

    fn part(&self, at: usize, n: usize) -> Self {
        let [at, size] = [at, n].map(|values| (values * size_of::<T>()) as u64);
        Self { portion: self.portion, ..Self::new(self.raw.clone(), self.offset + at, size, n) }
    }

    /// The same buffer, whose contents come with `portion`.
    pub(super) fn in_portion(self, portion: Option<Portion>) -> Self {
        Self { portion, ..self }
    }

    /// The same buffer, whose contents are the rows of the embedding for a step's tokens.
    pub fn of_rows(self) -> Self {
        self.in_portion(Some(Portion::Rows))
    }

    /// The portion of the weights that has to be on the GPU before a kernel reads the buffer.
    pub fn portion(&self) -> Option<Portion> {
        self.portion
    }

    /// The same buffer, for kernels that use less than all of it in a step.
    pub fn using(mut self, used: Used) -> Self {
        self.used = used;
        self
    }

    /// How much of it a step uses.
    pub(super) fn used(&self) -> Used {
        self.used
    }

    pub(super) fn binding(&self) -> wgpu::BindingResource<'_> {
        let size = NonZero::new(self.size);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.raw,
            offset: self.offset,
            size,
        })
    }
}
