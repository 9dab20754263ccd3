//! The weights on the GPU, and their way there from the file, one piece at a time.

use std::collections::VecDeque;

use super::Progress;
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::gpu::{Buffer, Gpu};
use crate::kernels::{Dense, DenseType, Shard, Ternary};
use crate::model::{Config, Role, Weight};
use crate::source::{Reader, Source};
use crate::ternary;

/// Bytes read and uploaded at once. A multiple of every row's alignment.
const PIECE: u64 = 1 << 20;

/// Pieces that are on their way to the GPU at most.
const MAX_IN_FLIGHT: usize = 4;

/// Every weight of the model.
pub(super) struct Weights {
    /// The embedding and, tied, the LM head `[n_vocab, n_embd]`.
    pub(super) token_embd: Dense,
    /// `[n_embd]`.
    pub(super) output_norm: Buffer<f32>,
    pub(super) blocks: Vec<Block>,
}

/// The weights of one transformer block.
pub(super) struct Block {
    /// `[n_embd]`.
    pub(super) attn_norm: Buffer<f32>,
    /// q, k and v, `[n_embd + 2 n_kv, n_embd]`.
    pub(super) attn_qkv: Ternary,
    /// `[n_embd]`.
    pub(super) attn_sub_norm: Buffer<f32>,
    /// `[n_embd, n_embd]`.
    pub(super) attn_output: Ternary,
    /// `[n_embd]`.
    pub(super) ffn_norm: Buffer<f32>,
    /// gate and up, `[2, n_ff, n_embd]`.
    pub(super) ffn_gate_up: Ternary,
    /// `[n_ff]`.
    pub(super) ffn_sub_norm: Buffer<f32>,
    /// `[n_embd, n_ff]`.
    pub(super) ffn_down: Ternary,
}

/// Where a tensor of the file goes.
enum Target<'a> {
    Vector(&'a Buffer<f32>),
    Dense(&'a Dense),
    /// Rows of one part of a matrix, from the given row on.
    Ternary(&'a Ternary, usize, usize),
}

impl Weights {
    pub(super) async fn allocate(gpu: &Gpu, config: &Config, table: &[Weight]) -> Result<Self> {
        let ty =
            table.iter().find(|w| w.role == Role::TokenEmbd).map_or(DenseType::F16, |w| {
                match w.tensor.ty {
                    TensorType::F16 => DenseType::F16,
                    _ => DenseType::F32,
                }
            });
        gpu.packing("the weights", || Self::buffers(gpu, config, ty)).await
    }

    fn buffers(gpu: &Gpu, config: &Config, ty: DenseType) -> Self {
        let (n_embd, n_ff) = (config.n_embd, config.n_ff);
        let n_qkv = n_embd + 2 * config.n_head_kv * config.head_dim;
        Self {
            token_embd: Dense {
                k: n_embd,
                rows: config.n_vocab,
                ty,
                shards: shards(gpu, "token_embd", config.n_vocab, n_embd * ty.bytes(), 1),
            },
            output_norm: gpu.buffer("output_norm", n_embd),
            blocks: (0..config.n_layer)
                .map(|_| Block {
                    attn_norm: gpu.buffer("attn_norm", n_embd),
                    attn_qkv: matrix(gpu, "attn_qkv", 1, n_qkv, n_embd, config.head_dim),
                    attn_sub_norm: gpu.buffer("attn_sub_norm", n_embd),
                    attn_output: matrix(gpu, "attn_output", 1, n_embd, n_embd, 1),
                    ffn_norm: gpu.buffer("ffn_norm", n_embd),
                    ffn_gate_up: matrix(gpu, "ffn_gate_up", 2, n_ff, n_embd, 1),
                    ffn_sub_norm: gpu.buffer("ffn_sub_norm", n_ff),
                    ffn_down: matrix(gpu, "ffn_down", 1, n_embd, n_ff, 1),
                })
                .collect(),
        }
    }

    fn target(&self, config: &Config, weight: &Weight) -> Target<'_> {
        let n_kv = config.n_head_kv * config.head_dim;
        // `block` is checked against n_layer where the table is made.
        let block = &self.blocks[weight.block];
        match weight.role {
            Role::TokenEmbd => Target::Dense(&self.token_embd),
            Role::OutputNorm => Target::Vector(&self.output_norm),
            Role::AttnNorm => Target::Vector(&block.attn_norm),
            Role::AttnQ => Target::Ternary(&block.attn_qkv, 0, 0),
            Role::AttnK => Target::Ternary(&block.attn_qkv, 0, config.n_embd),
            Role::AttnV => Target::Ternary(&block.attn_qkv, 0, config.n_embd + n_kv),
            Role::AttnSubNorm => Target::Vector(&block.attn_sub_norm),
            Role::AttnOutput => Target::Ternary(&block.attn_output, 0, 0),
            Role::FfnNorm => Target::Vector(&block.ffn_norm),
            Role::FfnGate => Target::Ternary(&block.ffn_gate_up, 0, 0),
            Role::FfnUp => Target::Ternary(&block.ffn_gate_up, 1, 0),
            Role::FfnSubNorm => Target::Vector(&block.ffn_sub_norm),
            Role::FfnDown => Target::Ternary(&block.ffn_down, 0, 0),
        }
    }
}

fn matrix(gpu: &Gpu, label: &str, parts: usize, rows: usize, k: usize, together: usize) -> Ternary {
    Ternary {
        k,
        rows,
        parts,
        shards: shards(gpu, label, rows, parts * k / 4, together),
        scale: gpu.buffer(label, parts * rows),
    }
}

/// As few buffers as hold `rows` of `row_bytes`, each within a binding; where that is possible, every
/// `together` rows are in one.
fn shards(gpu: &Gpu, label: &str, rows: usize, row_bytes: usize, together: usize) -> Vec<Shard> {
    let fit = (gpu.max_binding as usize / row_bytes).max(1);
    let together = if together <= fit { together } else { 1 };
    let most = fit / together * together;
    // Shards of like size: none is a remainder of a few rows.
    let each = rows.div_ceil(rows.div_ceil(most)).next_multiple_of(together);
    (0..rows)
        .step_by(each)
        .map(|first| {
            let rows = first..(first + each).min(rows);
            Shard { buffer: gpu.buffer(label, rows.len() * row_bytes / 4), rows }
        })
        .collect()
}

/// Uploads every tensor of `table`, which is in the file's order. Returns how many values of 2 and
/// more an embedding of f16 has.
pub(super) async fn load<S: Source>(
    gpu: &Gpu,
    config: &Config,
    weights: &Weights,
    table: &[Weight],
    reader: &mut Reader<S>,
    i2s_arm: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<usize> {
    let total = reader.len();
    let mut large = 0;
    let mut under_way = VecDeque::new();
    for weight in table {
        let tensor = &weight.tensor;
        let target = weights.target(config, weight);
        let end = tensor.offset + tensor.len;
        let mut at = tensor.offset;
        while at < end {
            // A ternary tensor's last piece also holds its scale and padding, 32 bytes.
            let next = if end - at <= PIECE + 32 { end } else { at + PIECE };
            let mut bytes = reader.read(at..next).await?;
            let place = Place { gpu, weight, at: (at - tensor.offset) as usize };
            match target {
                Target::Vector(buffer) => place.vector(buffer, &bytes)?,
                Target::Dense(matrix) => large += place.dense(matrix, tensor.ty, &bytes)?,
                Target::Ternary(matrix, part, first_row) => {
                    let codes = weight.rows() * weight.columns() / 4 - place.at;
                    let (codes, tail) = bytes.split_at_mut(codes.min((next - at) as usize));
                    if i2s_arm {
                        ternary::repack_arm(codes);
                    }
                    place.ternary(matrix, part, first_row, codes)?;
                    if !tail.is_empty() {
                        place.scale(matrix, part, first_row, weight.scale(tail)?);
                    }
                }
            }
            under_way.push_back(gpu.flush());
            if under_way.len() > MAX_IN_FLIGHT
                && let Some(first) = under_way.pop_front()
            {
                gpu.arrived(first).await;
            }
            gpu.check()?;
            at = next;
            progress(Progress::Upload { loaded: at, total });
        }
    }
    Ok(large)
}

/// A piece of a tensor: which, and at which of its bytes.
struct Place<'a> {
    gpu: &'a Gpu,
    weight: &'a Weight,
    at: usize,
}

impl Place<'_> {
    fn vector(&self, buffer: &Buffer<f32>, bytes: &[u8]) -> Result<()> {
        let values: Vec<f32> = floats(bytes).collect();
        self.finite(values.iter().all(|v| v.is_finite()))?;
        self.gpu.write(buffer, self.at / 4, &values);
        Ok(())
    }

    /// Returns how many f16 of 2 and more there are.
    fn dense(&self, matrix: &Dense, ty: TensorType, bytes: &[u8]) -> Result<usize> {
        let halves = || bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        let mut large = 0;
        match ty {
            TensorType::F16 => {
                let found = survey_f16(bytes);
                self.finite(found.finite)?;
                large = found.large;
                self.rows(&matrix.shards, 1, 0, matrix.k * 2, self.at, bytes);
            }
            TensorType::Bf16 => {
                let values: Vec<u32> = halves().map(|bits| u32::from(bits) << 16).collect();
                self.finite(values.iter().all(|bits| f32::from_bits(*bits).is_finite()))?;
                let bytes = bytemuck::cast_slice(&values);
                self.rows(&matrix.shards, 1, 0, matrix.k * 4, self.at * 2, bytes);
            }
            _ => {
                self.finite(floats(bytes).all(f32::is_finite))?;
                self.rows(&matrix.shards, 1, 0, matrix.k * 4, self.at, bytes);
            }
        }
        Ok(large)
    }

    fn ternary(&self, matrix: &Ternary, part: usize, first_row: usize, codes: &[u8]) -> Result<()> {
        self.weight.check_codes(codes, self.at as u64)?;
        let row_bytes = matrix.k / 4;
        let at = first_row * row_bytes + self.at;
        self.rows(&matrix.shards, matrix.parts, part, row_bytes, at, codes);
        Ok(())
    }

    /// One scale for every row of the tensor.
    fn scale(&self, matrix: &Ternary, part: usize, first_row: usize, scale: f32) {
        let scales = vec![scale; self.weight.rows()];
        self.gpu.write(&matrix.scale, part * matrix.rows + first_row, &scales);
    }

    /// Writes `bytes`, which begin at byte `at` of a part's rows, to the shards they fall into.
    fn rows(
        &self,
        shards: &[Shard],
        parts: usize,
        part: usize,
        row_bytes: usize,
        at: usize,
        bytes: &[u8],
    ) {
        debug_assert!(part < parts, "a part of the matrix");
        for shard in shards {
            let (start, end) = (shard.rows.start * row_bytes, shard.rows.end * row_bytes);
            let (from, to) = (at.max(start), (at + bytes.len()).min(end));
            if from < to {
                let offset = part * (end - start) + from - start;
                let words = &bytes[from - at..to - at];
                self.gpu.write(&shard.buffer.cast::<u8>(), offset, words);
            }
        }
    }

    fn finite(&self, is: bool) -> Result<()> {
        if is {
            return Ok(());
        }
        let name = &self.weight.tensor.name;
        Err(Error::BadGguf(format!("tensor `{name}` holds values that are not finite")))
    }
}

/// What a piece of f16 holds.
#[derive(Debug, PartialEq)]
struct F16Survey {
    /// Whether all are numbers.
    finite: bool,
    /// How many are 2 or more in size, or none.
    large: usize,
}

/// Looks at four at a time: a page does not have the GPU for this, and an embedding has hundreds of
/// millions.
fn survey_f16(bytes: &[u8]) -> F16Survey {
    /// In each of four: the lowest and the highest bit of the exponent, all of it, and the sign.
    const LOW: u64 = 0x0400_0400_0400_0400;
    const HIGH: u64 = 0x4000_4000_4000_4000;
    const EXPONENT: u64 = 0x7c00_7c00_7c00_7c00;
    const SIGN: u64 = 0x8000_8000_8000_8000;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let (mut carried, mut large) = (0, 0);
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        // An exponent of ones, which infinities and NaN have, carries into the place of the sign.
        carried |= (word & EXPONENT) + LOW;
        large += (word & HIGH).count_ones() as usize;
    }
    F16Survey { finite: carried & SIGN == 0, large }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn the_survey_of_f16_agrees_with_each_value() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            for place in 0..6 {
                let mut halves = [0x3bff_u16; 6];
                halves[place] = bits;
                let found = survey_f16(bytemuck::cast_slice(&halves));
                // From 2 on, the exponent's highest bit is set, also in what is not finite.
                let large = usize::from(!value.is_finite() || value.to_f32().abs() >= 2.0);
                assert_eq!(found, F16Survey { finite: value.is_finite(), large }, "{bits:#06x}");
            }
        }
        let odd = [0x3bff_u16; 7];
        let found = survey_f16(bytemuck::cast_slice(&odd));
        assert_eq!(found, F16Survey { finite: true, large: 0 });
    }
}
