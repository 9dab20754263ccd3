//! Uploads the weights from the file to the GPU, a megabyte at a time.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use bytemuck::Pod;
use half::f16;

use super::weights::{Stacked, Target, Weights};
use crate::blocks::{BlockScales, BlockType, are_finite, block_type};
use crate::compute::Progress;
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::gpu::{Buffer, Link, Uploader};
use crate::kernels::{Dense, Packed, Ternary};
use crate::model::{Config, Kind, Role, RopePairs, Weight};
use crate::source::{Reader, Source};
use crate::ternary;

/// Bytes that are read and uploaded at a time. More are taken if rows that belong together are
/// longer.
pub const UPLOAD: usize = 1 << 20;

/// Bytes at the beginning of each tensor that are hashed, to tell models of the same shape apart.
const SAMPLE: usize = 256;

/// How to read the file.
pub(super) struct Upload<'a> {
    pub(super) gpu: Link,
    pub(super) config: &'a Config,
    pub(super) weights: &'a Weights,
    /// Whether the file's I2_S codes are in the layout of ARM builds.
    pub(super) i2s_arm: bool,
    /// Whether the context takes the long factors of RoPE rather than the short ones.
    pub(super) long_factors: bool,
}

/// The parts of the file that a load keeps in main memory.
pub(super) struct Uploaded {
    /// The divisors of RoPE's frequencies `[head_dim / 2]`, if the file has them.
    pub(super) rope_divisors: Option<Vec<f32>>,
    /// A hash of the first bytes of each tensor.
    pub(super) sample: u64,
}

impl Upload<'_> {
    /// Uploads every tensor of `table`, which is in the file's order.
    ///
    /// Errors: `bad-gguf` for values that no model has, and those of the source and the device.
    pub(super) async fn run<S: Source>(
        &self,
        table: &[Weight],
        reader: &mut Reader<S>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Uploaded> {
        let total = reader.len();
        let mut rope_divisors = None;
        let mut sample = DefaultHasher::new();
        let mut uploader = Uploader::new(&self.gpu);
        for weight in table {
            let tensor = &weight.tensor;
            let end = tensor.offset + tensor.len;
            let each = self.slice_len(weight) as u64;
            let mut at = tensor.offset;
            while at < end {
                // The last slice of an I2_S tensor includes its scale and padding.
                let next = if end - at <= each + ternary::TAIL as u64 { end } else { at + each };
                let mut bytes = reader.read(at..next).await?;
                if at == tensor.offset {
                    sample.write(&bytes[..bytes.len().min(SAMPLE)]);
                }
                let at_byte = (at - tensor.offset) as usize;
                let slice = Slice { uploader: &mut uploader, weight, at: at_byte };
                rope_divisors = self.slice(slice, &mut bytes).await?.or(rope_divisors);
                at = next;
                progress(Progress::Upload { loaded: at, total });
            }
        }
        uploader.submit();
        self.gpu.check()?;
        Ok(Uploaded { rope_divisors, sample: sample.finish() })
    }

    /// The bytes of a slice. A slice is whole rows of blocks, whole heads if the order of their
    /// rows changes, and all of a vector.
    fn slice_len(&self, weight: &Weight) -> usize {
        let tensor = &weight.tensor;
        let row = match block_type(tensor.ty) {
            Some(block) => weight.columns() / block.elements * block.bytes,
            None => weight.columns() / 4,
        };
        let together = match weight.role.kind() {
            Kind::Vector => return tensor.len as usize,
            _ if self.swaps_rows(weight) => row * self.config.head_dim,
            _ if block_type(tensor.ty).is_some() => row,
            _ => 1,
        };
        (UPLOAD / together).max(1) * together
    }

    /// Whether the rows of each head change their order, so that the pairs of RoPE are `i` and
    /// `i + head_dim / 2`. Scores do not depend on the order of a head's values, if it is the same
    /// for q and k.
    fn swaps_rows(&self, weight: &Weight) -> bool {
        self.config.architecture.rope_pairs == RopePairs::Neighbours
            && matches!(weight.role, Role::AttnQ | Role::AttnK)
    }

    /// Uploads a slice. If it is the divisors of RoPE's frequencies, returns them instead.
    async fn slice(&self, mut slice: Slice<'_>, bytes: &mut [u8]) -> Result<Option<Vec<f32>>> {
        let (weight, config) = (slice.weight, self.config);
        match self.weights.target(config, weight) {
            Target::Vector(buffer) => {
                let mut values = weight.floats(bytes)?;
                if weight.role == Role::OutputNorm {
                    values.iter_mut().for_each(|value| *value /= config.logit_scale);
                }
                slice.uploader.write(&buffer, 0, &values).await?;
            }
            Target::Dense(matrix) => slice.dense(matrix, bytes).await?,
            Target::Packed(to) => {
                slice.packed(&to, bytes, self.head_dim_if_swapped(weight)).await?
            }
            Target::Ternary(to) => {
                let codes = weight.rows() * weight.columns() / 4 - slice.at;
                let (codes, tail) = bytes.split_at_mut(codes.min(bytes.len()));
                if self.i2s_arm {
                    ternary::repack_arm(codes);
                }
                slice.ternary(&to, codes, self.head_dim_if_swapped(weight)).await?;
                if !tail.is_empty() {
                    let factor = match weight.role {
                        Role::AttnOutput | Role::FfnDown => config.residual_scale,
                        _ => 1.0,
                    };
                    slice.scale(&to, weight.scale(tail)? * factor).await?;
                }
            }
            Target::Kept => {
                let used = match weight.role {
                    Role::RopeFactorsShort => !self.long_factors,
                    Role::RopeFactorsLong => self.long_factors,
                    _ => true,
                };
                let divisors = weight.divisors(bytes)?;
                return Ok(used.then_some(divisors));
            }
        }
        Ok(None)
    }

    fn head_dim_if_swapped(&self, weight: &Weight) -> Option<usize> {
        self.swaps_rows(weight).then_some(self.config.head_dim)
    }
}

/// A slice of a tensor: the tensor, and the byte at which the slice begins.
struct Slice<'a> {
    uploader: &'a mut Uploader,
    weight: &'a Weight,
    at: usize,
}

impl Slice<'_> {
    async fn dense(&mut self, matrix: &Dense, bytes: &[u8]) -> Result<()> {
        let halves = || bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        let shards = || matrix.shards.iter().map(|shard| (&shard.buffer, &shard.rows));
        match self.weight.tensor.ty {
            TensorType::F16 => {
                self.finite(are_finite(bytes))?;
                self.write(shards(), matrix.k * 2, (0, self.at), bytes).await?;
            }
            TensorType::Bf16 => {
                let values: Vec<u32> = halves().map(|bits| u32::from(bits) << 16).collect();
                self.finite(values.iter().all(|bits| f32::from_bits(*bits).is_finite()))?;
                let bytes = bytemuck::cast_slice(&values);
                self.write(shards(), matrix.k * 4, (0, self.at * 2), bytes).await?;
            }
            _ => {
                self.finite(floats(bytes).all(f32::is_finite))?;
                self.write(shards(), matrix.k * 4, (0, self.at), bytes).await?;
            }
        }
        Ok(())
    }

    async fn ternary(
        &mut self,
        to: &Stacked<'_, Ternary>,
        codes: &mut [u8],
        swapped: Option<usize>,
    ) -> Result<()> {
        self.weight.check_codes(codes, self.at as u64)?;
        let row_bytes = to.w.k / 4;
        if let Some(head_dim) = swapped {
            part_pairs(codes, row_bytes, head_dim);
        }
        let shards = to.w.shards.iter().map(|shard| (&shard.buffer, &shard.rows));
        let at = to.first_row * row_bytes + self.at;
        self.write(shards, row_bytes, (to.matrix, at), codes).await?;
        Ok(())
    }

    /// Uploads the tensor's one scale for each of its rows.
    async fn scale(&mut self, to: &Stacked<'_, Ternary>, scale: f32) -> Result<()> {
        let scales = vec![scale; self.weight.rows()];
        let at = to.matrix * to.w.rows + to.first_row;
        self.uploader.write(&to.w.scale, at, &scales).await
    }

    async fn packed(
        &mut self,
        to: &Stacked<'_, Packed>,
        bytes: &[u8],
        swapped: Option<usize>,
    ) -> Result<()> {
        let Packed { k, format, shards, .. } = to.w;
        let block = self.block()?;
        let (mut codes, mut scales, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        block
            .repack(bytes, &mut codes, &mut scales, &mut offsets)
            .map_err(|fault| self.weight.fault(self.at as u64, fault))?;
        let mut scales: Vec<u32> = match block.scales {
            BlockScales::F16(_) => scales.chunks(k / block.group).flat_map(f16_pairs).collect(),
            BlockScales::Factors(read) => {
                let (mut of_blocks, mut factors) = (Vec::new(), Vec::new());
                read(bytes, &mut of_blocks, &mut factors);
                let rows =
                    of_blocks.chunks(k / block.elements).zip(factors.chunks(k / block.group));
                rows.flat_map(|(f16s, factors)| f16_pairs(f16s).chain(factor_words(factors)))
                    .collect()
            }
            BlockScales::WithOffsets(_) => {
                let pairs = scales.iter().zip(&offsets);
                pairs.flat_map(|(scale, offset)| [scale.to_bits(), offset.to_bits()]).collect()
            }
        };
        let (code_words, scale_words) = (format.code_words(*k), format.scale_words(*k));
        if let Some(head_dim) = swapped {
            part_pairs(&mut codes, code_words, head_dim);
            part_pairs(&mut scales, scale_words, head_dim);
        }
        let first_row = to.first_row + self.at / (k / block.elements * block.bytes);
        let planes = [(codes, code_words), (scales, scale_words)];
        for (plane, (words, row_words)) in planes.into_iter().enumerate() {
            let shards =
                shards.iter().map(|shard| ([&shard.codes, &shard.scales][plane], &shard.rows));
            let at = first_row * row_words * 4;
            self.write(shards, row_words * 4, (to.matrix, at), bytemuck::cast_slice(&words))
                .await?;
        }
        Ok(())
    }

    fn block(&self) -> Result<&'static BlockType> {
        let ty = self.weight.tensor.ty;
        block_type(ty).ok_or_else(|| Error::Internal(format!("{ty} has no blocks")))
    }

    /// Writes `bytes`, which begin at byte `at` of a matrix, to the shards that hold them. Rows
    /// beyond the last shard only pad the vocabulary. They are left out.
    async fn write<'a>(
        &mut self,
        shards: impl Iterator<Item = (&'a Buffer<u32>, &'a Range<usize>)>,
        row_bytes: usize,
        (matrix, at): (usize, usize),
        bytes: &[u8],
    ) -> Result<()> {
        for (buffer, rows) in shards {
            let (start, end) = (rows.start * row_bytes, rows.end * row_bytes);
            let (from, to) = (at.max(start), (at + bytes.len()).min(end));
            if from < to {
                let offset = matrix * (end - start) + from - start;
                let bytes = &bytes[from - at..to - at];
                self.uploader.write(&buffer.cast::<u8>(), offset, bytes).await?;
            }
        }
        Ok(())
    }

    fn finite(&self, is: bool) -> Result<()> {
        if is {
            return Ok(());
        }
        let name = &self.weight.tensor.name;
        Err(Error::BadGguf(format!("tensor `{name}` holds values that are not finite")))
    }
}

/// Reorders the rows of each head: rows of even index first, then the others.
fn part_pairs<T: Pod>(rows: &mut [T], row_len: usize, head_dim: usize) {
    for head in rows.chunks_exact_mut(head_dim * row_len) {
        let pairs = head.chunks_exact(2 * row_len);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for pair in pairs {
            first.extend_from_slice(&pair[..row_len]);
            second.extend_from_slice(&pair[row_len..]);
        }
        let (upper, lower) = head.split_at_mut(first.len());
        upper.copy_from_slice(&first);
        lower.copy_from_slice(&second);
    }
}

/// The scales of a row as pairs of f16. The last one may be alone.
fn f16_pairs(row: &[f32]) -> impl Iterator<Item = u32> + '_ {
    let bits = |scale: f32| u32::from(f16::from_f32(scale).to_bits());
    row.chunks(2).map(move |pair| bits(pair[0]) | pair.get(1).map_or(0, |&scale| bits(scale) << 16))
}

/// The factors of a row, four in a word. Every block has a multiple of four.
fn factor_words(row: &[i8]) -> impl Iterator<Item = u32> + '_ {
    row.as_chunks().0.iter().map(|four| u32::from_le_bytes(four.map(|factor| factor as u8)))
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))
}
