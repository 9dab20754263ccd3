//! Reads the weights, each tensor straight into its own memory.

use std::hash::{DefaultHasher, Hasher};

use super::formats::{Kernel, kernel_of};
use super::machine::InstructionSet;
use super::product::Matrix;
use super::split::Split;
use crate::blocks::{are_finite, block_type};
use crate::compute::{EngineOptions, Progress};
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::model::{Config, Kind, Role, Weight};
use crate::source::{Reader, Source};
use crate::ternary;

/// Bytes that are read at a time. More are taken if a row is longer.
const SLICE: u64 = 1 << 20;

/// Bytes at the beginning of each tensor that are hashed, to tell models of the same shape apart.
const SAMPLE: usize = 256;

/// The weights of a model.
pub(super) struct Weights {
    pub(super) token_embd: Matrix,
    /// The LM head, if it is not the embedding.
    pub(super) output: Option<Matrix>,
    pub(super) output_norm: Vec<f32>,
    pub(super) blocks: Vec<Block>,
    /// The divisors of RoPE's frequencies `[head_dim / 2]`, if the file has them.
    pub(super) rope_divisors: Option<Vec<f32>>,
    /// A hash of the first bytes of each tensor. A GPU has another one.
    pub(super) sample: u64,
}

impl Weights {
    /// The LM head, which may be the embedding.
    pub(super) fn lm_head(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.token_embd)
    }
}

/// The weights of a block. Norms that the architecture does not have are `None`.
pub(super) struct Block {
    pub(super) attn_norm: Vec<f32>,
    pub(super) attn_q: Matrix,
    pub(super) attn_k: Matrix,
    pub(super) attn_v: Matrix,
    pub(super) attn_q_norm: Option<Vec<f32>>,
    pub(super) attn_k_norm: Option<Vec<f32>>,
    /// The norms of the inputs of q, k and v, if each has its own.
    pub(super) attn_norms_in: Option<Vec<Vec<f32>>>,
    pub(super) attn_sub_norm: Option<Vec<f32>>,
    pub(super) attn_output: Matrix,
    pub(super) ffn_norm: Vec<f32>,
    pub(super) ffn_gate: Matrix,
    pub(super) ffn_up: Matrix,
    /// The norms of the inputs of gate and up, if each has its own.
    pub(super) ffn_norms_in: Option<Vec<Vec<f32>>>,
    pub(super) ffn_sub_norm: Option<Vec<f32>>,
    pub(super) ffn_down: Matrix,
}

/// Reads a model's weights.
pub(super) struct Loader<'a, S> {
    pub(super) reader: &'a mut Reader<S>,
    pub(super) config: &'a Config,
    pub(super) options: &'a EngineOptions,
    /// The instruction sets to use, the best first.
    pub(super) sets: &'a [InstructionSet],
    pub(super) n_ctx: usize,
    /// The instruction set of each type of matrix so far.
    pub(super) chosen: Vec<(TensorType, InstructionSet)>,
    /// The tensor that is split into upper and lower bytes.
    pub(super) split: Option<Role>,
}

/// A tensor in memory.
enum Held {
    Matrix(Matrix),
    Vector(Vec<f32>),
}

impl<S: Source> Loader<'_, S> {
    /// Reads the tensors of `table`, which is in the file's order.
    ///
    /// Errors: `bad-gguf` for values that no model has, `out-of-memory`, and those of the source.
    pub(super) async fn load(
        &mut self,
        table: &[Weight],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Weights> {
        let mut hasher = DefaultHasher::new();
        // Keys and values are not held as on a GPU.
        hasher.write(b"cpu");
        // All memory comes first, because a model without room for it is not worth reading.
        let is_vector = |weight: &Weight| matches!(weight.role.kind(), Kind::Vector);
        let room = |weight| match is_vector(weight) {
            true => Ok(Vec::new()),
            false => reserve(weight, self.config),
        };
        let rooms = table.iter().map(room).collect::<Result<Vec<_>>>()?;
        let mut held = Vec::with_capacity(table.len());
        for (weight, room) in table.iter().zip(rooms) {
            let tensor = if is_vector(weight) {
                Held::Vector(self.vector(weight, &mut hasher, progress).await?)
            } else {
                Held::Matrix(self.matrix(weight, room, &mut hasher, progress).await?)
            };
            held.push((weight.role, weight.block, tensor));
        }
        self.collect(held, hasher.finish())
    }

    async fn vector(
        &mut self,
        weight: &Weight,
        hasher: &mut DefaultHasher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<f32>> {
        let tensor = &weight.tensor;
        let end = tensor.offset + tensor.len;
        let bytes = self.reader.read(tensor.offset..end).await?;
        hasher.write(&bytes[..bytes.len().min(SAMPLE)]);
        progress(Progress::Upload { loaded: end, total: self.reader.len() });
        match weight.role {
            Role::RopeFreqs | Role::RopeFactorsShort | Role::RopeFactorsLong => {
                weight.divisors(&bytes)
            }
            _ => weight.floats(&bytes),
        }
    }

    async fn matrix(
        &mut self,
        weight: &Weight,
        mut bytes: Vec<u8>,
        hasher: &mut DefaultHasher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Matrix> {
        let tensor = &weight.tensor;
        let is_i2s = tensor.ty == TensorType::I2S;
        let tail = if is_i2s { ternary::TAIL as u64 } else { 0 };
        let codes = tensor.len - tail;
        let row = codes / weight.rows() as u64;
        let rows = kept_rows(weight, self.config);
        let kept = rows as u64 * row;
        let each = (SLICE / row.max(1)).max(1) * row.max(1);
        let mut split = (self.split == Some(weight.role)).then(|| Split::new(self.sets));
        if split.is_some() {
            // The matrix holds all upper bytes and then all lower ones, so each slice is written at two offsets.
            bytes.resize(kept as usize, 0);
        }
        let mut at = 0;
        while at < codes {
            let next = (at + each).min(codes);
            let mut slice = self.reader.read(tensor.offset + at..tensor.offset + next).await?;
            if at == 0 {
                hasher.write(&slice[..slice.len().min(SAMPLE)]);
            }
            if is_i2s && self.options.i2s_arm {
                ternary::repack_arm(&mut slice);
            }
            check(weight, at, &slice)?;
            let of_padding = next.saturating_sub(kept.max(at)) as usize;
            let slice = &slice[..slice.len() - of_padding];
            match &mut split {
                None => bytes.extend_from_slice(slice),
                Some(split) => {
                    let (upper, lower) = bytes.split_at_mut(kept as usize / 2);
                    let at = (at.min(kept) / 2) as usize;
                    split.add(slice, row as usize / 2, &mut upper[at..], &mut lower[at..]);
                }
            }
            at = next;
            let loaded = tensor.offset + at;
            progress(Progress::Upload { loaded, total: self.reader.len() });
        }
        let mut factor = 1.0;
        if is_i2s {
            let end = tensor.offset + tensor.len;
            factor = weight.scale(&self.reader.read(end - tail..end).await?)?;
        }
        let of_floats = self.options.float_activations && block_type(tensor.ty).is_some();
        // Blocks become floats before they are multiplied with floats.
        let set = self.choose(if of_floats { TensorType::F32 } else { tensor.ty })?;
        let kernel = kernel(tensor.ty)?;
        Ok(Matrix { kernel, set, rows, bytes, factor, of_floats, split })
    }

    /// The instruction set of the kernel of a type.
    fn choose(&mut self, ty: TensorType) -> Result<InstructionSet> {
        if let Some((_, set)) = self.chosen.iter().find(|(known, _)| *known == ty) {
            return Ok(*set);
        }
        let set = kernel(ty)?.choose(self.sets);
        self.chosen.push((ty, set));
        Ok(set)
    }

    fn collect(&self, held: Vec<(Role, usize, Held)>, sample: u64) -> Result<Weights> {
        let mut vectors = Vec::new();
        let mut matrices = Vec::new();
        for (role, block, held) in held {
            match held {
                Held::Vector(vector) => vectors.push(((role, block), vector)),
                Held::Matrix(matrix) => matrices.push(((role, block), matrix)),
            }
        }
        let mut vector_if = |role, block| take(&mut vectors, (role, block));
        let mut matrix_if = |role, block| take(&mut matrices, (role, block));
        let missing = |role: Role| Error::MissingTensor { name: format!("{}.weight", role.name()) };
        let mut blocks = Vec::new();
        for block in 0..self.config.n_layer {
            let mut vector = |role| vector_if(role, block).ok_or_else(|| missing(role));
            let (attn_norm, ffn_norm) = (vector(Role::AttnNorm)?, vector(Role::FfnNorm)?);
            let mut matrix = |role| matrix_if(role, block).ok_or_else(|| missing(role));
            blocks.push(Block {
                attn_norm,
                ffn_norm,
                attn_q: matrix(Role::AttnQ)?,
                attn_k: matrix(Role::AttnK)?,
                attn_v: matrix(Role::AttnV)?,
                attn_output: matrix(Role::AttnOutput)?,
                ffn_gate: matrix(Role::FfnGate)?,
                ffn_up: matrix(Role::FfnUp)?,
                ffn_down: matrix(Role::FfnDown)?,
                attn_q_norm: vector_if(Role::AttnQNorm, block),
                attn_k_norm: vector_if(Role::AttnKNorm, block),
                attn_norms_in: [Role::AttnQNormIn, Role::AttnKNormIn, Role::AttnVNormIn]
                    .into_iter()
                    .map(|role| vector_if(role, block))
                    .collect(),
                attn_sub_norm: vector_if(Role::AttnSubNorm, block)
                    .or_else(|| vector_if(Role::AttnOutputNormIn, block)),
                ffn_norms_in: [Role::FfnGateNormIn, Role::FfnUpNormIn]
                    .into_iter()
                    .map(|role| vector_if(role, block))
                    .collect(),
                ffn_sub_norm: vector_if(Role::FfnSubNorm, block)
                    .or_else(|| vector_if(Role::FfnDownNormIn, block)),
            });
        }
        let factors = match self.config.rope.takes_long_factors(self.n_ctx) {
            true => Role::RopeFactorsLong,
            false => Role::RopeFactorsShort,
        };
        let of_norm = vector_if(Role::OutputNorm, 0);
        let rope_divisors = vector_if(Role::RopeFreqs, 0).or_else(|| vector_if(factors, 0));
        let embd = matrix_if(Role::TokenEmbd, 0);
        Ok(Weights {
            token_embd: embd.ok_or_else(|| missing(Role::TokenEmbd))?,
            output: matrix_if(Role::Output, 0),
            output_norm: of_norm.ok_or_else(|| missing(Role::OutputNorm))?,
            blocks,
            rope_divisors,
            sample,
        })
    }
}

fn kernel(ty: TensorType) -> Result<&'static Kernel> {
    kernel_of(ty).ok_or_else(|| Error::Internal(format!("no kernel for {ty}")))
}

/// The rows of a matrix that are kept. Those of the vocabulary may be followed by rows that only pad it.
fn kept_rows(weight: &Weight, config: &Config) -> usize {
    match weight.role.kind() {
        Kind::Vocabulary => config.n_vocab,
        _ => weight.rows(),
    }
}

/// Bytes of a matrix that are kept.
fn kept_bytes(weight: &Weight, config: &Config) -> u64 {
    weight.tensor.len / weight.rows() as u64 * kept_rows(weight, config) as u64
}

/// Bytes of all tensors of `table` that are kept.
pub(super) fn weight_bytes(config: &Config, table: &[Weight]) -> u64 {
    table.iter().map(|weight| kept_bytes(weight, config)).sum()
}

/// Empty memory with room for the codes of a matrix.
///
/// Errors: `out-of-memory`.
fn reserve(weight: &Weight, config: &Config) -> Result<Vec<u8>> {
    let name = &weight.tensor.name;
    let needed = kept_bytes(weight, config);
    let mut bytes = Vec::new();
    let room = usize::try_from(needed).ok().and_then(|len| bytes.try_reserve_exact(len).ok());
    let lacks = || Error::OutOfMemory { what: format!("tensor `{name}`"), needed, granted: 0 };
    room.map(|()| bytes).ok_or_else(lacks)
}

fn take<K: PartialEq, T>(from: &mut Vec<(K, T)>, key: K) -> Option<T> {
    let index = from.iter().position(|(other, _)| *other == key)?;
    Some(from.swap_remove(index).1)
}

/// Refuses values that no model has, in a slice that begins `at` bytes after the tensor's beginning.
fn check(weight: &Weight, at: u64, slice: &[u8]) -> Result<()> {
    let ty = weight.tensor.ty;
    if ty == TensorType::I2S {
        return weight.check_codes(slice, at);
    }
    if let Some(block) = block_type(ty) {
        return block.check(slice).map_err(|fault| weight.fault(at, fault));
    }
    let finite = match ty {
        TensorType::F16 => are_finite(slice),
        TensorType::Bf16 => {
            slice.as_chunks().0.iter().all(|b| half::bf16::from_le_bytes(*b).is_finite())
        }
        _ => slice.as_chunks().0.iter().all(|b| f32::from_le_bytes(*b).is_finite()),
    };
    if finite {
        return Ok(());
    }
    let name = &weight.tensor.name;
    Err(Error::BadGguf(format!("tensor `{name}` holds values that are not finite")))
}
