//! Weights as the kernels see them: matrices, cut by rows where they exceed a binding.

use std::ops::Range;

use crate::gpu::Buffer;

/// Neighbouring rows of a matrix in a buffer of their own.
pub struct Shard {
    /// The rows' contents.
    pub buffer: Buffer<u32>,
    /// The rows, counted in the whole matrix.
    pub rows: Range<usize>,
}

/// A ternary matrix `[parts, rows, k]` in i2_s codes, with a scale for each row.
///
/// Several tensors with the same input are stacked: q, k and v by rows, gate and up as two parts
/// whose rows pair up.
pub struct Ternary {
    /// Values in a row.
    pub k: usize,
    /// Rows of each part.
    pub rows: usize,
    /// 1, or 2 for gate and up.
    pub parts: usize,
    /// The codes: each shard holds its rows of part 0, then of part 1.
    pub shards: Vec<Shard>,
    /// The scale of each row, `[parts, rows]`.
    pub scale: Buffer<f32>,
}

impl Ternary {
    /// Whether no head's `head_dim` rows are in two shards.
    pub fn ends_with_heads(&self, head_dim: usize) -> bool {
        self.shards.iter().all(|shard| shard.rows.end.is_multiple_of(head_dim))
    }
}

/// How a [`Dense`] matrix is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseType {
    /// IEEE half precision.
    F16,
    /// The same, each parted into two bytes: rows `[2, k]` of upper bytes, then of lower ones, see
    /// `shaders/shared/split_f16.wgsl`.
    F16Split,
    /// Single precision.
    F32,
}

/// A matrix `[rows, k]` of floats.
pub struct Dense {
    /// Values in a row.
    pub k: usize,
    /// Rows.
    pub rows: usize,
    /// How values are held.
    pub ty: DenseType,
    /// The values.
    pub shards: Vec<Shard>,
}

impl DenseType {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::F16Split => 2,
            Self::F32 => 4,
        }
    }
}

/// int8 activations with the scale of each row, see `shaders/shared/quantize.wgsl`.
#[derive(Clone)]
pub struct Quantized {
    /// `[n_tokens, k / 4]` words of four values.
    pub q: Buffer<u32>,
    /// `[n_tokens]` of `s` and the sum of the row's values.
    pub scale: Buffer<[f32; 2]>,
}

/// What becomes of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// `y = v`.
    Store,
    /// `y += v`: the residual connection.
    Add,
    /// `y = relu(gate)² * up` of a matrix with two parts.
    Relu2Glu,
}
