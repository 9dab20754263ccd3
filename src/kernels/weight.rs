//! Weights and activations, in the form that kernels read. A matrix that exceeds a binding is cut
//! into shards of rows.

use std::ops::Range;

use crate::gpu::{Buffer, Const};
use crate::model::Activation;

/// Neighbouring rows of a matrix in one buffer.
#[derive(Clone)]
pub struct Shard {
    /// The rows' contents.
    pub buffer: Buffer<u32>,
    /// The rows, counted in the whole matrix.
    pub rows: Range<usize>,
}

/// A ternary matrix `[matrices, rows, k]` in i2_s codes, with a scale for each row.
///
/// Tensors with the same input are stacked. q, k and v are one matrix, row after row. gate and up
/// are two matrices, and each row of gate belongs to the same row of up.
pub struct Ternary {
    /// Values in a row.
    pub k: usize,
    /// Rows of each matrix.
    pub rows: usize,
    /// The number of matrices: 1, or 2 for gate and up.
    pub matrices: usize,
    /// The codes. Each shard holds its rows of the first matrix, then those of the second.
    pub shards: Vec<Shard>,
    /// The scale of each row, `[matrices, rows]`.
    pub scale: Buffer<f32>,
}

impl Ternary {
    /// The matrix with those shards alone that are within `rows`: a product of it has results for these
    /// rows, where those of the whole matrix would be.
    pub fn part(&self, rows: &Range<usize>) -> Self {
        let Self { k, matrices, scale, .. } = self;
        let within = |shard: &&Shard| rows.contains(&shard.rows.start);
        let shards = self.shards.iter().filter(within).cloned().collect();
        Self { k: *k, rows: self.rows, matrices: *matrices, shards, scale: scale.clone() }
    }

    /// Stacked matrices as one, whose rows are those of the first matrix, and then those of the second.
    pub fn one_below_the_other(&self) -> Self {
        let Self { k, rows, matrices, ref scale, .. } = *self;
        let shards = (0..matrices).flat_map(|matrix| {
            self.shards.iter().map(move |shard| {
                let words = shard.buffer.len() / matrices;
                Shard {
                    buffer: shard.buffer.range(matrix * words, words),
                    rows: matrix * rows + shard.rows.start..matrix * rows + shard.rows.end,
                }
            })
        });
        let shards = shards.collect();
        Self { k, rows: matrices * rows, matrices: 1, shards, scale: scale.clone() }
    }

    /// Whether each head's `head_dim` rows are in one shard.
    pub fn ends_with_heads(&self, head_dim: usize) -> bool {
        self.shards.iter().all(|shard| shard.rows.end.is_multiple_of(head_dim))
    }
}

/// How a [`Dense`] matrix is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseType {
    /// IEEE half precision.
    F16,
    /// Half precision, each value split into two bytes. A row `[2, k]` holds all upper bytes, then
    /// all lower ones: see `shaders/shared/split_f16.wgsl`.
    F16Split,
    /// Single precision.
    F32,
}

/// A matrix `[rows, k]` of floats.
pub struct Dense {
    /// Values in a row.
    pub k: usize,
    /// The number of rows.
    pub rows: usize,
    /// How values are held.
    pub ty: DenseType,
    /// The values.
    pub shards: Vec<Shard>,
    /// `[rows]`: the number by which the exponents of each row are lowered in a split embedding.
    /// See `shaders/shared/split_f16.wgsl`. Kernels of other types do not read it.
    pub shifts: Buffer<u32>,
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

/// An RMS norm: `x / sqrt(mean(x²) + eps) * weight`.
#[derive(Clone)]
pub struct Norm {
    /// `[k]`.
    pub weight: Buffer<f32>,
    /// Added to the mean of the squares, so that a row of zeros causes no division by zero.
    pub eps: f32,
}

/// int8 activations with the scale of each row: see `shaders/shared/quantize.wgsl`.
#[derive(Clone)]
pub struct Quantized {
    /// `[n_tokens, k / 4]` words of four values.
    pub q: Buffer<u32>,
    /// `[n_tokens]`: the scale `s`, and the sum of the row's values.
    pub scale: Buffer<[f32; 2]>,
}

/// The use of a matrix product `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// `y = v`.
    Store,
    /// `y += v`, for the residual connection.
    Add,
    /// `y = activation(gate) * up`, for two stacked matrices.
    Gated(Activation),
}

impl Product {
    /// For [`Kernel::example`](crate::gpu::Kernel::example).
    pub(super) const EXAMPLE: Self = Self::Gated(Activation::Relu2);

    /// The number of matrices that it takes.
    pub const fn matrices(self) -> usize {
        if matches!(self, Self::Gated(_)) { 2 } else { 1 }
    }

    /// The constants for the shaders.
    pub(super) fn consts(self) -> Vec<Const> {
        const ALL: [(&str, Activation); 3] =
            [("RELU2", Activation::Relu2), ("SILU", Activation::Silu), ("GELU", Activation::Gelu)];
        let activation = match self {
            Self::Gated(activation) => activation,
            Self::Store | Self::Add => Activation::Relu2,
        };
        let mut consts = vec![
            Const::size("MATRICES", self.matrices()),
            Const::Bool("ADD", self == Self::Add),
            Const::U32("ACTIVATION", activation as u32),
        ];
        consts.extend(ALL.map(|(name, activation)| Const::U32(name, activation as u32)));
        consts
    }
}
