//! The KV cache: its rows, and how values are held in them.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::input::{largest, per_scale, round};
use crate::compute::KvType;
use crate::error::{Error, Result};
use crate::model::Config;

/// The keys and values of all blocks. A row is the keys, or the values, of one position: head after head.
/// Rows of int8 have a scale for each head behind them.
pub(super) struct Cache {
    pub(super) shape: CacheShape,
    /// The keys of the first block, its values, and so on.
    buffers: Vec<Box<[u32]>>,
}

/// The form of a row.
#[derive(Clone, Copy)]
pub(super) struct CacheShape {
    pub(super) kv: KvType,
    pub(super) n_head_kv: usize,
    pub(super) head_dim: usize,
}

impl CacheShape {
    pub(super) fn new(config: &Config, kv: KvType) -> Self {
        Self { kv, n_head_kv: config.n_head_kv, head_dim: config.head_dim }
    }

    /// Bytes of a row, a multiple of 4.
    pub(super) fn row_bytes(&self) -> usize {
        self.scales_at() + if self.kv == KvType::Int8 { 4 * self.n_head_kv } else { 0 }
    }

    /// Where the scales begin in a row.
    pub(super) fn scales_at(&self) -> usize {
        self.n_head_kv * self.head_bytes()
    }

    /// Bytes of a head in a row.
    pub(super) fn head_bytes(&self) -> usize {
        self.head_dim * self.kv.bits() / 8
    }

    /// Writes the values of a position as a row.
    pub(super) fn write_row(&self, values: &[f32], row: &mut [u8]) {
        match self.kv {
            KvType::F32 => row.copy_from_slice(bytemuck::cast_slice(values)),
            KvType::F16 => {
                let mut halves = [f16::ZERO; 64];
                for (values, row) in values.chunks(64).zip(row.chunks_mut(128)) {
                    halves[..values.len()].convert_from_f32_slice(values);
                    for (two, half) in row.as_chunks_mut::<2>().0.iter_mut().zip(halves) {
                        *two = half.to_le_bytes();
                    }
                }
            }
            KvType::Int8 => {
                let (codes, scales) = row.split_at_mut(self.scales_at());
                let heads = values.chunks_exact(self.head_dim);
                let rows = codes.chunks_exact_mut(self.head_dim).zip(scales.as_chunks_mut().0);
                for (values, (codes, scale)) in heads.zip(rows) {
                    let largest = largest(values);
                    let per = per_scale(largest);
                    for (code, value) in codes.iter_mut().zip(values) {
                        *code = round(value * per, -127.0) as u8;
                    }
                    *scale = (largest / 127.0).to_le_bytes();
                }
            }
        }
    }
}

impl Cache {
    /// A cache of `positions` for `n_layer` blocks.
    ///
    /// Errors: `out-of-memory`.
    pub(super) fn new(shape: CacheShape, n_layer: usize, positions: usize) -> Result<Self> {
        let each = positions as u64 * shape.row_bytes() as u64;
        let needed = 2 * n_layer as u64 * each;
        let lacks = |granted| Error::OutOfMemory {
            what: format!("a KV cache of {positions} tokens"),
            needed,
            granted,
        };
        // More than there are addresses is not asked for at all: what was granted would be written first.
        if usize::try_from(needed).is_err() {
            return Err(lacks(0));
        }
        let mut buffers = Vec::new();
        for _ in 0..2 * n_layer {
            let buffer = bytemuck::allocation::try_zeroed_slice_box(each as usize / 4)
                .map_err(|()| lacks(buffers.len() as u64 * each))?;
            buffers.push(buffer);
        }
        Ok(Self { shape, buffers })
    }

    /// The rows of buffer `index`.
    pub(super) fn rows(&self, index: usize) -> &[u8] {
        bytemuck::cast_slice(&self.buffers[index])
    }

    /// A row of buffer `index`, to write.
    pub(super) fn row_mut(&mut self, index: usize, position: usize) -> &mut [u8] {
        let bytes = self.shape.row_bytes();
        &mut bytemuck::cast_slice_mut(&mut self.buffers[index])[position * bytes..][..bytes]
    }

    fn words(&self) -> usize {
        self.shape.row_bytes() / 4
    }

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> usize {
        self.buffers.iter().map(|buffer| 4 * buffer.len()).sum()
    }

    /// Makes room for `positions`. Gives whether there was the memory.
    pub(super) fn grow(&mut self, positions: usize) -> bool {
        let Ok(mut larger) = Self::new(self.shape, self.buffers.len() / 2, positions) else {
            return false;
        };
        for (new, old) in larger.buffers.iter_mut().zip(&self.buffers) {
            new[..old.len()].copy_from_slice(old);
        }
        *self = larger;
        true
    }

    /// Copies `n` positions.
    pub(super) fn copy(&mut self, from: usize, to: usize, n: usize) {
        let words = self.words();
        for buffer in &mut self.buffers {
            buffer.copy_within(from * words..(from + n) * words, to * words);
        }
    }

    /// Reads `n` positions of buffer `index`; `None` if it has no such positions.
    pub(super) fn read(&self, index: usize, first: usize, n: usize) -> Option<Vec<u32>> {
        let words = self.words();
        Some(self.buffers.get(index)?.get(first * words..(first + n) * words)?.to_vec())
    }

    /// Writes positions of buffer `index`, as they were read.
    pub(super) fn write(&mut self, index: usize, first: usize, bytes: &[u8]) {
        let at = first * self.words();
        let to = self.buffers.get_mut(index).and_then(|buffer| buffer.get_mut(at..));
        for (word, bytes) in to.into_iter().flatten().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
}
