//! The weights on the GPU, and their way there from the file, a megabyte at a time.

use std::collections::VecDeque;

use super::Progress;
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::gpu::{Allocation, Buffer, Gpu};
use crate::kernels::{Dense, DenseType, Norm, Shard, Ternary};
use crate::model::{Config, Role, Weight};
use crate::source::{Reader, Source};
use crate::ternary;

/// Bytes that are read and uploaded together. A multiple of every row's alignment.
const UPLOAD: u64 = 1 << 20;

/// Uploads in flight, at most.
const MAX_IN_FLIGHT: usize = 4;

/// Every weight of the model.
pub(super) struct Weights {
    /// The embedding and, tied, the LM head `[n_vocab, n_embd]`.
    pub(super) token_embd: Dense,
    /// `[n_embd]`.
    pub(super) output_norm: Norm,
    pub(super) blocks: Vec<Block>,
}

/// The weights of one transformer block.
pub(super) struct Block {
    /// `[n_embd]`.
    pub(super) attn_norm: Norm,
    /// q, k and v, `[n_embd + 2 n_kv, n_embd]`.
    pub(super) attn_qkv: Ternary,
    /// `[n_embd]`.
    pub(super) attn_sub_norm: Norm,
    /// `[n_embd, n_embd]`.
    pub(super) attn_output: Ternary,
    /// `[n_embd]`.
    pub(super) ffn_norm: Norm,
    /// gate and up, `[2, n_ff, n_embd]`.
    pub(super) ffn_gate_up: Ternary,
    /// `[n_ff]`.
    pub(super) ffn_sub_norm: Norm,
    /// `[n_embd, n_ff]`.
    pub(super) ffn_down: Ternary,
}

/// Where a tensor of the file goes.
enum Target<'a> {
    Vector(&'a Buffer<f32>),
    Dense(&'a Dense),
    Ternary(Stacked<'a>),
}

/// Where a tensor's rows begin in a [`Ternary`]: in which of its matrices, and at which row.
#[derive(Clone, Copy)]
struct Stacked<'a> {
    w: &'a Ternary,
    matrix: usize,
    first_row: usize,
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
        let buffers = |allocation: &mut Allocation<'_>| Self::buffers(allocation, config, ty);
        gpu.packing("the weights", buffers).await
    }

    fn buffers(a: &mut Allocation<'_>, config: &Config, ty: DenseType) -> Self {
        let (n_embd, n_ff, head_dim) = (config.n_embd, config.n_ff, config.head_dim);
        let n_qkv = n_embd + 2 * config.n_head_kv * head_dim;
        let norm = |a: &mut Allocation<'_>, label: &str, n: usize| Norm {
            weight: a.buffer(label, n),
            eps: config.eps,
        };
        Self {
            token_embd: Dense {
                k: n_embd,
                rows: config.n_vocab,
                ty,
                shards: shards(a, "token_embd", config.n_vocab, n_embd * ty.bytes(), 1),
            },
            output_norm: norm(a, "output_norm", n_embd),
            blocks: (0..config.n_layer)
                .map(|_| Block {
                    attn_norm: norm(a, "attn_norm", n_embd),
                    attn_qkv: ternary(a, "attn_qkv", [1, n_qkv, n_embd], head_dim),
                    attn_sub_norm: norm(a, "attn_sub_norm", n_embd),
                    attn_output: ternary(a, "attn_output", [1, n_embd, n_embd], 1),
                    ffn_norm: norm(a, "ffn_norm", n_embd),
                    ffn_gate_up: ternary(a, "ffn_gate_up", [2, n_ff, n_embd], 1),
                    ffn_sub_norm: norm(a, "ffn_sub_norm", n_ff),
                    ffn_down: ternary(a, "ffn_down", [1, n_embd, n_ff], 1),
                })
                .collect(),
        }
    }

    fn target(&self, config: &Config, weight: &Weight) -> Target<'_> {
        let n_kv = config.n_head_kv * config.head_dim;
        // `block` is checked against n_layer where the table is made.
        let block = &self.blocks[weight.block];
        let rows = |w, matrix, first_row| Target::Ternary(Stacked { w, matrix, first_row });
        match weight.role {
            Role::TokenEmbd => Target::Dense(&self.token_embd),
            Role::OutputNorm => Target::Vector(&self.output_norm.weight),
            Role::AttnNorm => Target::Vector(&block.attn_norm.weight),
            Role::AttnQ => rows(&block.attn_qkv, 0, 0),
            Role::AttnK => rows(&block.attn_qkv, 0, config.n_embd),
            Role::AttnV => rows(&block.attn_qkv, 0, config.n_embd + n_kv),
            Role::AttnSubNorm => Target::Vector(&block.attn_sub_norm.weight),
            Role::AttnOutput => rows(&block.attn_output, 0, 0),
            Role::FfnNorm => Target::Vector(&block.ffn_norm.weight),
            Role::FfnGate => rows(&block.ffn_gate_up, 0, 0),
            Role::FfnUp => rows(&block.ffn_gate_up, 1, 0),
            Role::FfnSubNorm => Target::Vector(&block.ffn_sub_norm.weight),
            Role::FfnDown => rows(&block.ffn_down, 0, 0),
        }
    }
}

/// A matrix of the shape `[matrices, rows, k]`.
fn ternary(
    a: &mut Allocation<'_>,
    label: &str,
    [matrices, rows, k]: [usize; 3],
    together: usize,
) -> Ternary {
    Ternary {
        k,
        rows,
        matrices,
        shards: shards(a, label, rows, matrices * k / 4, together),
        scale: a.buffer(label, matrices * rows),
    }
}

/// As few buffers as hold `rows` of `row_bytes`, each within a binding. Where possible, every
/// `together` rows are in one buffer.
fn shards(
    a: &mut Allocation<'_>,
    label: &str,
    rows: usize,
    row_bytes: usize,
    together: usize,
) -> Vec<Shard> {
    let fit = (a.gpu().max_binding as usize / row_bytes).max(1);
    let together = if together <= fit { together } else { 1 };
    let most = fit / together * together;
    // Shards of about the same size: none holds just a few rows.
    let each = rows.div_ceil(rows.div_ceil(most)).next_multiple_of(together);
    (0..rows)
        .step_by(each)
        .map(|first| {
            let rows = first..(first + each).min(rows);
            Shard { buffer: a.buffer(label, rows.len() * row_bytes / 4), rows }
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
    let mut in_flight = VecDeque::new();
    for weight in table {
        let tensor = &weight.tensor;
        let target = weights.target(config, weight);
        let end = tensor.offset + tensor.len;
        let mut at = tensor.offset;
        while at < end {
            // A ternary tensor's last upload also takes its scale and padding, 32 bytes.
            let next = if end - at <= UPLOAD + 32 { end } else { at + UPLOAD };
            let mut bytes = reader.read(at..next).await?;
            let slice = Slice { gpu, weight, at: (at - tensor.offset) as usize };
            match target {
                Target::Vector(buffer) => slice.vector(buffer, &bytes)?,
                Target::Dense(matrix) => large += slice.dense(matrix, tensor.ty, &bytes)?,
                Target::Ternary(target) => {
                    let codes = weight.rows() * weight.columns() / 4 - slice.at;
                    let (codes, tail) = bytes.split_at_mut(codes.min((next - at) as usize));
                    if i2s_arm {
                        ternary::repack_arm(codes);
                    }
                    slice.ternary(target, codes)?;
                    if !tail.is_empty() {
                        slice.scale(target, weight.scale(tail)?);
                    }
                }
            }
            in_flight.push_back(gpu.flush());
            if in_flight.len() > MAX_IN_FLIGHT
                && let Some(first) = in_flight.pop_front()
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

/// A slice of a tensor: of which, and the byte at which it begins.
struct Slice<'a> {
    gpu: &'a Gpu,
    weight: &'a Weight,
    at: usize,
}

impl Slice<'_> {
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
                self.rows(&matrix.shards, matrix.k * 2, (0, self.at), bytes);
            }
            TensorType::Bf16 => {
                let values: Vec<u32> = halves().map(|bits| u32::from(bits) << 16).collect();
                self.finite(values.iter().all(|bits| f32::from_bits(*bits).is_finite()))?;
                let bytes = bytemuck::cast_slice(&values);
                self.rows(&matrix.shards, matrix.k * 4, (0, self.at * 2), bytes);
            }
            _ => {
                self.finite(floats(bytes).all(f32::is_finite))?;
                self.rows(&matrix.shards, matrix.k * 4, (0, self.at), bytes);
            }
        }
        Ok(large)
    }

    fn ternary(&self, to: Stacked<'_>, codes: &[u8]) -> Result<()> {
        self.weight.check_codes(codes, self.at as u64)?;
        let row_bytes = to.w.k / 4;
        let at = to.first_row * row_bytes + self.at;
        self.rows(&to.w.shards, row_bytes, (to.matrix, at), codes);
        Ok(())
    }

    /// One scale for every row of the tensor.
    fn scale(&self, to: Stacked<'_>, scale: f32) {
        let scales = vec![scale; self.weight.rows()];
        self.gpu.write(&to.w.scale, to.matrix * to.w.rows + to.first_row, &scales);
    }

    /// Writes `bytes`, which begin at byte `at` of a matrix, to the shards that hold them.
    fn rows(&self, shards: &[Shard], row_bytes: usize, (matrix, at): (usize, usize), bytes: &[u8]) {
        for shard in shards {
            let (start, end) = (shard.rows.start * row_bytes, shard.rows.end * row_bytes);
            let (from, to) = (at.max(start), (at + bytes.len()).min(end));
            if from < to {
                let offset = matrix * (end - start) + from - start;
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

/// What a slice of f16 holds.
#[derive(Debug, PartialEq)]
struct F16Survey {
    /// Whether all are numbers.
    finite: bool,
    /// How many are 2 or more in size, or no numbers.
    large: usize,
}

/// Looks at four at a time: this runs on the CPU, and an embedding has hundreds of millions.
fn survey_f16(bytes: &[u8]) -> F16Survey {
    /// In each of the four: the lowest and the highest bit of the exponent, all of it, and the
    /// sign.
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
        // An exponent of ones, as infinities and NaN have, carries into the sign's bit.
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
            for index in 0..6 {
                let mut halves = [0x3bff_u16; 6];
                halves[index] = bits;
                let found = survey_f16(bytemuck::cast_slice(&halves));
                // From 2 on the exponent's highest bit is set, as in what is not finite.
                let large = usize::from(!value.is_finite() || value.to_f32().abs() >= 2.0);
                assert_eq!(found, F16Survey { finite: value.is_finite(), large }, "{bits:#06x}");
            }
        }
        let odd = [0x3bff_u16; 7];
        let found = survey_f16(bytemuck::cast_slice(&odd));
        assert_eq!(found, F16Survey { finite: true, large: 0 });
    }
}
