//! The KV cache of a [`State`]: its size, how it grows, and copies within it.

use super::state::State;
use crate::error::{Error, Result};
use crate::gpu::{Allocation, Buffer, Gpu, Used};
use crate::kernels::{AttentionShape, KvCache};

impl State {
    /// The keys of the first block, its values, and so on.
    pub(super) fn cache_buffer(&self, index: usize) -> &Buffer<u32> {
        let cache = &self.cache[index / 2];
        if index.is_multiple_of(2) { &cache.keys } else { &cache.values }
    }

    /// The number of positions in the KV cache.
    pub(super) fn positions(&self) -> usize {
        let words = |cache: &KvCache| cache.keys.len() / words_per_position(&cache.shape);
        self.cache.first().map_or(0, words)
    }

    /// The most positions that the KV cache can have, which a binding limits.
    pub(super) fn max_positions(&self, gpu: &Gpu) -> usize {
        let shape = &self.partials.shape;
        gpu.max_binding.min(gpu.max_buffer) as usize / shape.cache_bytes(1)
    }

    /// Bytes of a position, in all blocks.
    pub(super) fn bytes_per_position(&self) -> u64 {
        (2 * self.cache.len() * self.partials.shape.cache_bytes(1)) as u64
    }

    /// Replaces the KV cache by one of `positions`, and copies its contents. Gives whether the
    /// device had the memory. If it had, the plans have to be recorded again.
    pub(super) async fn grow(&mut self, gpu: &Gpu, positions: usize) -> Result<bool> {
        // The buffers that are not in use in the end, even if this future is dropped before that.
        let mut unused = Unused { gpu, caches: Vec::new() };
        let allocated = gpu.allocating("a larger KV cache", |allocation| {
            unused.caches = caches(allocation, self.partials.shape, self.cache.len(), positions);
        });
        let granted = match allocated.await {
            Ok(()) => true,
            Err(Error::OutOfMemory { .. }) => false,
            Err(error) => return Err(error),
        };
        if granted {
            let pairs = self
                .cache
                .iter()
                .zip(&unused.caches)
                .flat_map(|(old, new)| [(&old.keys, &new.keys), (&old.values, &new.values)]);
            gpu.copy(pairs.map(|(old, new)| [(old, 0), (new, 0)]), self.cache[0].keys.len());
            std::mem::swap(&mut self.cache, &mut unused.caches);
        }
        Ok(granted)
    }

    /// Copies the keys and values of `n` positions. They go through the scratch memory, because
    /// WebGPU does not copy within a buffer.
    pub(super) fn copy_cache(&self, gpu: &Gpu, [from, to]: [usize; 2], n: usize) {
        let scratch = self.scratch.cast::<u32>();
        let each = words_per_position(&self.partials.shape);
        let together = scratch.len() / each;
        let buffers = self.cache.iter().flat_map(|cache| [&cache.keys, &cache.values]);
        for buffer in buffers {
            for done in (0..n).step_by(together) {
                let len = together.min(n - done) * each;
                let at = |first: usize| (buffer, (first + done) * each);
                gpu.copy([[at(from), (&scratch, 0)], [(&scratch, 0), at(to)]], len);
            }
        }
    }
}

/// A KV cache that is freed when this is dropped.
struct Unused<'gpu> {
    gpu: &'gpu Gpu,
    caches: Vec<KvCache>,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        for unused in &self.caches {
            self.gpu.free(&unused.keys);
            self.gpu.free(&unused.values);
        }
    }
}

/// The KV cache of each block.
pub(super) fn caches(
    a: &mut Allocation<'_>,
    shape: AttentionShape,
    n_layer: usize,
    positions: usize,
) -> Vec<KvCache> {
    let words = positions * words_per_position(&shape);
    let used = Used::Positions(shape.cache_bytes(1) as u64);
    (0..n_layer)
        .map(|_| KvCache {
            shape,
            keys: a.buffer("k_cache", words).using(used),
            values: a.buffer("v_cache", words).using(used),
        })
        .collect()
}

fn words_per_position(shape: &AttentionShape) -> usize {
    shape.cache_bytes(1) / size_of::<u32>()
}
