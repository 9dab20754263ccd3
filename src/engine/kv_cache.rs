//! The KV cache that all sequences share: its size, how it grows, and copies within it.

use crate::error::{Error, Result};
use crate::gpu::{Allocation, Buffer, Gpu, Used};
use crate::kernels::{AttentionShape, KvCache};

/// The keys and values of all blocks.
pub(super) struct Cache {
    shape: AttentionShape,
    /// Those of each block.
    pub(super) blocks: Vec<KvCache>,
}

impl Cache {
    /// A cache of `positions` for `n_layer` blocks.
    pub(super) fn allocate(
        a: &mut Allocation<'_>,
        shape: AttentionShape,
        n_layer: usize,
        positions: usize,
    ) -> Self {
        let words = positions * words_per_position(&shape);
        let used = Used::Positions(shape.cache_bytes(1) as u64);
        let blocks = (0..n_layer)
            .map(|_| KvCache {
                shape,
                keys: a.buffer("k_cache", words).using(used),
                values: a.buffer("v_cache", words).using(used),
            })
            .collect();
        Self { shape, blocks }
    }

    /// The number of its buffers.
    pub(super) fn n_buffers(&self) -> usize {
        2 * self.blocks.len()
    }

    /// Buffer number `index`: the keys of the first block, its values, and so on.
    pub(super) fn buffer(&self, index: usize) -> &Buffer<u32> {
        let block = &self.blocks[index / 2];
        if index.is_multiple_of(2) { &block.keys } else { &block.values }
    }

    /// The number of positions.
    pub(super) fn positions(&self) -> usize {
        self.blocks.first().map_or(0, |block| block.keys.len() / words_per_position(&self.shape))
    }

    /// The most positions that it can have, which a binding limits.
    pub(super) fn max_positions(&self, gpu: &Gpu) -> usize {
        gpu.max_binding.min(gpu.max_buffer) as usize / self.position_bytes()
    }

    /// Bytes of a position in each buffer.
    pub(super) fn position_bytes(&self) -> usize {
        self.shape.cache_bytes(1)
    }

    /// Takes larger buffers for `positions`, and copies the contents. Gives whether the device had
    /// the memory. If it had, the plans have to be recorded again.
    pub(super) async fn grow(&mut self, gpu: &Gpu, positions: usize) -> Result<bool> {
        // The buffers that are not in use in the end, even if this future is dropped before that.
        let mut unused = Unused { gpu, blocks: Vec::new() };
        let (shape, n_layer) = (self.shape, self.blocks.len());
        let allocated = gpu.allocating("a larger KV cache", |allocation| {
            unused.blocks = Self::allocate(allocation, shape, n_layer, positions).blocks;
        });
        let granted = match allocated.await {
            Ok(()) => true,
            Err(Error::OutOfMemory { .. }) => false,
            Err(error) => return Err(error),
        };
        if granted {
            let pairs = self
                .blocks
                .iter()
                .zip(&unused.blocks)
                .flat_map(|(old, new)| [(&old.keys, &new.keys), (&old.values, &new.values)]);
            gpu.copy(pairs.map(|(old, new)| [(old, 0), (new, 0)]), self.blocks[0].keys.len());
            std::mem::swap(&mut self.blocks, &mut unused.blocks);
        }
        Ok(granted)
    }

    /// Copies the keys and values of `n` positions. They go through `scratch`, because WebGPU does
    /// not copy within a buffer.
    pub(super) fn copy(&self, gpu: &Gpu, scratch: &Buffer<u32>, [from, to]: [usize; 2], n: usize) {
        let each = words_per_position(&self.shape);
        let together = scratch.len() / each;
        for buffer in self.blocks.iter().flat_map(|block| [&block.keys, &block.values]) {
            for done in (0..n).step_by(together) {
                let len = together.min(n - done) * each;
                let at = |first: usize| (buffer, (first + done) * each);
                gpu.copy([[at(from), (scratch, 0)], [(scratch, 0), at(to)]], len);
            }
        }
    }
}

/// Buffers that are freed when this is dropped.
struct Unused<'gpu> {
    gpu: &'gpu Gpu,
    blocks: Vec<KvCache>,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        for unused in &self.blocks {
            self.gpu.free(&unused.keys);
            self.gpu.free(&unused.values);
        }
    }
}

fn words_per_position(shape: &AttentionShape) -> usize {
    shape.cache_bytes(1) / size_of::<u32>()
}
