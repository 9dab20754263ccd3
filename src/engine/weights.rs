//! The weights on the GPU: their buffers, and which buffer each tensor of the file goes to.

use std::ops::Range;

use super::residency::Residency;
use crate::blocks::{BlockScales, block_type};
use crate::gguf::TensorType;
use crate::gpu::{Allocation, Buffer, Goes, Plane};
use crate::kernels::{Dense, DenseType, Format, Norm, Packed, PackedShard, Scales, Shard, Ternary};
use crate::model::{Config, Role, Weight};

/// Bytes of the portions of an embedding that stays in main memory.
const KEPT_SLICE: u64 = 64 << 20;

/// Buffers begin at multiples of 256 bytes, which takes less than this in a slice of a few buffers.
const SLACK: u64 = 4 << 10;

/// Every weight of the model.
pub(super) struct Weights {
    /// `[n_vocab, n_embd]`.
    pub(super) token_embd: Vocabulary,
    /// The LM head `[n_vocab, n_embd]`, if it is not the embedding.
    output: Option<Vocabulary>,
    /// Whether the embedding is not on the GPU, so that a step's rows of it have to be fetched.
    pub(super) fetches_rows: bool,
    /// `[n_embd]`, divided by the scale of the logits.
    pub(super) output_norm: Norm,
    pub(super) blocks: Vec<Block>,
}

/// The weights of one transformer block. Norms that the architecture does not have are `None`.
pub(super) struct Block {
    /// `[n_embd]`.
    pub(super) attn_norm: Norm,
    /// q, k and v, `[n_q + 2 n_kv, n_embd]`. The pairs of RoPE are `i` and `i + head_dim / 2`. The
    /// file may have them in another order.
    pub(super) attn_qkv: Matrix,
    /// The norms of the heads of q and of k, `[2, head_dim]`.
    pub(super) head_norms: Option<Norm>,
    /// The norms of the inputs of q, k and v `[n_embd]`, if each has its own; else none.
    pub(super) attn_norms_in: Vec<Norm>,
    /// `[n_q]`.
    pub(super) attn_sub_norm: Option<Norm>,
    /// `[n_embd, n_q]`.
    pub(super) attn_output: Matrix,
    /// `[n_embd]`.
    pub(super) ffn_norm: Norm,
    /// gate and up, `[2, n_ff, n_embd]`; `[2 n_ff, n_embd]` if each has an input of its own.
    pub(super) ffn_gate_up: Matrix,
    /// The norms of the inputs of gate and up `[n_embd]`, if each has its own; else none.
    pub(super) ffn_norms_in: Vec<Norm>,
    /// `[n_ff]`.
    pub(super) ffn_sub_norm: Option<Norm>,
    /// `[n_embd, n_ff]`.
    pub(super) ffn_down: Matrix,
}

/// A matrix of a block.
pub(super) enum Matrix {
    /// A matrix of I2_S. Its inputs are int8 with a scale for each token.
    Ternary(Ternary),
    /// A matrix of blocks with scales of their own.
    Packed(Packed),
}

/// A matrix with a row for each token of the vocabulary.
pub(super) enum Vocabulary {
    Dense(Dense),
    Packed(Packed),
}

impl Vocabulary {
    /// The matrix, if it is of floats.
    pub(super) fn dense(&self) -> Option<&Dense> {
        match self {
            Self::Dense(dense) => Some(dense),
            Self::Packed(_) => None,
        }
    }

    /// The matrix, if it is of floats, to change how it is held.
    pub(super) fn dense_mut(&mut self) -> Option<&mut Dense> {
        match self {
            Self::Dense(dense) => Some(dense),
            Self::Packed(_) => None,
        }
    }

    /// Slices, one after the other, as one matrix.
    fn joined(first: Self, others: impl Iterator<Item = Self>) -> Self {
        let join = |mut all: Self, slice: Self| {
            match (&mut all, slice) {
                (Self::Dense(all), Self::Dense(slice)) => {
                    let first = all.rows;
                    all.rows += slice.rows;
                    all.shards.extend(slice.shards.into_iter().map(|Shard { buffer, rows }| {
                        Shard { buffer, rows: rows.start + first..rows.end + first }
                    }));
                }
                (Self::Packed(all), Self::Packed(slice)) => {
                    let first = all.rows;
                    all.rows += slice.rows;
                    all.shards.extend(slice.shards.into_iter().map(|shard| PackedShard {
                        rows: shard.rows.start + first..shard.rows.end + first,
                        ..shard
                    }));
                }
                _ => debug_assert!(false, "slices of different kinds"),
            }
            all
        };
        others.fold(first, join)
    }

    /// A matrix of the same kind with `rows` rows, for rows of this one that a step needs.
    pub(super) fn for_rows(&self, a: &mut Allocation<'_>, rows: usize) -> Self {
        let mut buffer = |row_words: usize| a.buffer("rows", rows * row_words).of_rows();
        match self {
            Self::Dense(Dense { k, ty, shifts, .. }) => {
                let shards = vec![Shard { buffer: buffer(k * ty.bytes() / 4), rows: 0..rows }];
                Self::Dense(Dense { k: *k, rows, ty: *ty, shards, shifts: shifts.clone() })
            }
            Self::Packed(Packed { k, matrices, format, factor, .. }) => {
                let shard = PackedShard {
                    codes: buffer(format.code_words(*k)),
                    scales: buffer(format.scale_words(*k)),
                    rows: 0..rows,
                };
                let (k, matrices, format, factor) = (*k, *matrices, *format, *factor);
                Self::Packed(Packed { k, rows, matrices, format, factor, shards: vec![shard] })
            }
        }
    }

    /// How rows of this matrix come to `rows`, which [`Vocabulary::for_rows`] made of it.
    pub(super) fn planes(&self, rows: &Self) -> Vec<Plane> {
        match (self, rows) {
            (Self::Dense(from), Self::Dense(to)) => vec![Plane {
                row_bytes: from.k * from.ty.bytes(),
                to: to.shards[0].buffer.clone(),
                from: from.shards.iter().map(|s| (s.rows.clone(), s.buffer.clone())).collect(),
            }],
            (Self::Packed(from), Self::Packed(to)) => {
                let plane = |words: usize, of: fn(&PackedShard) -> &Buffer<u32>| Plane {
                    row_bytes: 4 * words,
                    to: of(&to.shards[0]).clone(),
                    from: from.shards.iter().map(|s| (s.rows.clone(), of(s).clone())).collect(),
                };
                vec![
                    plane(from.format.code_words(from.k), |shard| &shard.codes),
                    plane(from.format.scale_words(from.k), |shard| &shard.scales),
                ]
            }
            _ => Vec::new(),
        }
    }

    fn target(&self) -> Target<'_> {
        match self {
            Self::Dense(w) => Target::Dense(w),
            Self::Packed(w) => Target::Packed(Stacked { w, matrix: 0, first_row: 0 }),
        }
    }

    /// Its buffers of values or codes.
    pub(super) fn buffers(&self) -> Vec<&Buffer<u32>> {
        match self {
            Self::Dense(dense) => dense.shards.iter().map(|shard| &shard.buffer).collect(),
            Self::Packed(packed) => packed.shards.iter().map(|shard| &shard.codes).collect(),
        }
    }
}

/// The destination of a tensor of the file.
pub(super) enum Target<'a> {
    Vector(Buffer<f32>),
    Dense(&'a Dense),
    Packed(Stacked<'a, Packed>),
    Ternary(Stacked<'a, Ternary>),
    /// Not on the GPU: divisors of RoPE are kept in main memory. A norm that the model does not
    /// have is dropped.
    Kept,
}

/// Where a tensor's rows begin in a stack: in which of its matrices, and at which row of it.
pub(super) struct Stacked<'a, W> {
    pub(super) w: &'a W,
    pub(super) matrix: usize,
    pub(super) first_row: usize,
}

impl Weights {
    /// The matrix from the last hidden state to logits.
    pub(super) fn lm_head(&self) -> &Vocabulary {
        self.output.as_ref().unwrap_or(&self.token_embd)
    }

    /// The same matrix, to change how it is held.
    pub(super) fn lm_head_mut(&mut self) -> &mut Vocabulary {
        self.output.as_mut().unwrap_or(&mut self.token_embd)
    }

    /// Whether the matrices of all blocks suit the kernels of the residual stream.
    pub(super) fn are_streamed(&self) -> bool {
        self.blocks.iter().all(Block::is_streamed)
    }

    /// The destination of a tensor.
    pub(super) fn target(&self, config: &Config, weight: &Weight) -> Target<'_> {
        let n_q = config.n_embd_q();
        // `block` was compared with n_layer when the table was made.
        let block = &self.blocks[weight.block];
        match weight.role {
            Role::TokenEmbd => self.token_embd.target(),
            Role::Output => self.lm_head().target(),
            Role::OutputNorm => Target::of(Some(&self.output_norm)),
            Role::RopeFreqs | Role::RopeFactorsShort | Role::RopeFactorsLong => Target::Kept,
            Role::AttnNorm => Target::of(Some(&block.attn_norm)),
            Role::AttnQ => block.attn_qkv.target(0, 0),
            Role::AttnK => block.attn_qkv.target(0, n_q),
            Role::AttnV => block.attn_qkv.target(0, n_q + config.n_embd_kv()),
            Role::AttnQNorm => Target::of_heads(block, Buffer::first),
            Role::AttnKNorm => Target::of_heads(block, Buffer::last),
            Role::AttnQNormIn => Target::of(block.attn_norms_in.first()),
            Role::AttnKNormIn => Target::of(block.attn_norms_in.get(1)),
            Role::AttnVNormIn => Target::of(block.attn_norms_in.get(2)),
            Role::AttnSubNorm | Role::AttnOutputNormIn => Target::of(block.attn_sub_norm.as_ref()),
            Role::AttnOutput => block.attn_output.target(0, 0),
            Role::FfnNorm => Target::of(Some(&block.ffn_norm)),
            Role::FfnGate => block.ffn_gate_up.target(0, 0),
            Role::FfnUp if !block.ffn_norms_in.is_empty() => {
                block.ffn_gate_up.target(0, config.n_ff)
            }
            Role::FfnUp => block.ffn_gate_up.target(1, 0),
            Role::FfnGateNormIn => Target::of(block.ffn_norms_in.first()),
            Role::FfnUpNormIn => Target::of(block.ffn_norms_in.get(1)),
            Role::FfnSubNorm | Role::FfnDownNormIn => Target::of(block.ffn_sub_norm.as_ref()),
            Role::FfnDown => block.ffn_down.target(0, 0),
        }
    }
}

impl Block {
    fn is_streamed(&self) -> bool {
        let has_sub_norms = self.attn_sub_norm.is_some() || self.ffn_sub_norm.is_some();
        let whole = |w: &Packed| w.ends_with_groups();
        !has_sub_norms
            && self.attn_qkv.is_packed_ternary(|_| true)
            && self.attn_output.is_packed_ternary(whole)
            && self.ffn_gate_up.is_packed_ternary(whole)
            && self.ffn_down.is_packed_ternary(whole)
    }
}

impl<'a> Target<'a> {
    fn of(norm: Option<&'a Norm>) -> Self {
        norm.map_or(Self::Kept, |norm| Self::Vector(norm.weight.clone()))
    }

    /// The norms of a block's heads. `half` gives the buffer of the norms of q or of k.
    fn of_heads(block: &'a Block, half: impl Fn(&Buffer<f32>, usize) -> Buffer<f32>) -> Self {
        let halved = |norms: &Norm| half(&norms.weight, norms.weight.len() / 2);
        block.head_norms.as_ref().map_or(Self::Kept, |norms| Self::Vector(halved(norms)))
    }
}

impl Matrix {
    /// The matrix, if it is I2_S.
    pub(super) fn ternary(&self) -> Option<&Ternary> {
        match self {
            Self::Ternary(ternary) => Some(ternary),
            Self::Packed(_) => None,
        }
    }

    /// Whether it is packed in 1 or 2 bits and `fits` accepts it.
    fn is_packed_ternary(&self, fits: impl Fn(&Packed) -> bool) -> bool {
        matches!(self, Self::Packed(w) if w.format.is_ternary() && fits(w))
    }

    /// The matrix with the shards within `rows` alone. Its results are where those of the whole matrix
    /// would be.
    pub(super) fn part(&self, rows: &Range<usize>) -> Self {
        match self {
            Self::Ternary(w) => Self::Ternary(w.part(rows)),
            Self::Packed(w) => Self::Packed(w.part(rows)),
        }
    }

    /// Stacked matrices as one, whose rows are those of the first matrix, and then those of the second. A
    /// matrix that [`Matrix::splits`] can be bound so.
    pub(super) fn one_below_the_other(&self) -> Self {
        match self {
            Self::Ternary(w) => Self::Ternary(w.one_below_the_other()),
            Self::Packed(w) => Self::Packed(w.one_below_the_other()),
        }
    }

    /// Whether each of the stacked matrices begins where a binding may begin.
    pub(super) fn splits(&self) -> bool {
        let begins = |words: usize| (words * size_of::<u32>()).is_multiple_of(256);
        match self {
            Self::Ternary(w) => {
                w.shards.iter().all(|shard| begins(shard.buffer.len() / w.matrices))
            }
            Self::Packed(w) => w.shards.iter().all(|shard| {
                begins(shard.codes.len() / w.matrices) && begins(shard.scales.len() / w.matrices)
            }),
        }
    }

    fn target(&self, matrix: usize, first_row: usize) -> Target<'_> {
        match self {
            Self::Ternary(w) => Target::Ternary(Stacked { w, matrix, first_row }),
            Self::Packed(w) => Target::Packed(Stacked { w, matrix, first_row }),
        }
    }
}

/// Derives the shapes and formats of a model's weights from its configuration and its tensors.
pub(super) struct Shapes<'a> {
    pub(super) config: &'a Config,
    pub(super) table: &'a [Weight],
    pub(super) residency: &'a Residency,
}

/// The matrices of a block: q, k and v, the output of attention, gate and up, and down.
type Matrices = [Matrix; 4];

impl Shapes<'_> {
    /// The matrices of a block.
    pub(super) fn matrices(&self, a: &mut Allocation<'_>, block: usize) -> Matrices {
        let Config { n_embd, n_ff, head_dim, residual_scale, .. } = *self.config;
        let n_q = self.config.n_embd_q();
        let n_kv = self.config.n_embd_kv();
        // Matrices with inputs of their own are no stack for the kernels, which then take each alone.
        let (qkv, [n_gate_up, gate_up_rows]) = match self.config.architecture.norms_inputs() {
            true => (vec![n_q, n_kv, n_kv], [1, 2]),
            false => (vec![n_q + 2 * n_kv], [2, 1]),
        };
        let mut matrix = |role, label, (matrices, parts, k), together, factor| {
            let shape = Stack { matrices, parts, k, together };
            match self.format(role, block) {
                None => Matrix::Ternary(shape.ternary(a, label)),
                Some(format) => Matrix::Packed(shape.packed(a, label, format, factor)),
            }
        };
        let gate_up = (n_gate_up, vec![n_ff; gate_up_rows], n_embd);
        [
            matrix(Role::AttnQ, "attn_qkv", (1, qkv, n_embd), head_dim, 1.0),
            matrix(Role::AttnOutput, "attn_output", (1, vec![n_embd], n_q), 32, residual_scale),
            matrix(Role::FfnGate, "ffn_gate_up", gate_up, 32, 1.0),
            matrix(Role::FfnDown, "ffn_down", (1, vec![n_embd], n_ff), 32, residual_scale),
        ]
    }

    pub(super) fn weights(&self, a: &mut Allocation<'_>) -> Weights {
        let Config { n_embd, n_ff, head_dim, .. } = *self.config;
        let n_q = self.config.n_embd_q();
        let architecture = self.config.architecture;
        a.bays(self.residency.bays(), self.residency.bay);
        let blocks = (0..self.config.n_layer).map(|block| {
            let [attn_qkv, attn_output, ffn_gate_up, ffn_down] =
                match self.residency.block_stays(block) {
                    true => self.matrices(a, block),
                    false => a.portion(Goes::InTurn, |a| self.matrices(a, block)).0,
                };
            let mut norms_in = |roles: &[Role]| -> Vec<Norm> {
                let own = roles.iter().filter(|role| architecture.has(**role));
                own.map(|&role| self.norm(a, role, n_embd)).collect()
            };
            let attn_norms_in =
                norms_in(&[Role::AttnQNormIn, Role::AttnKNormIn, Role::AttnVNormIn]);
            let ffn_norms_in = norms_in(&[Role::FfnGateNormIn, Role::FfnUpNormIn]);
            let mut norm_if = |role, n| architecture.has(role).then(|| self.norm(a, role, n));
            Block {
                head_norms: norm_if(Role::AttnQNorm, 2 * head_dim),
                attn_norms_in,
                attn_sub_norm: norm_if(Role::AttnSubNorm, n_q)
                    .or_else(|| norm_if(Role::AttnOutputNormIn, n_q)),
                ffn_norms_in,
                ffn_sub_norm: norm_if(Role::FfnSubNorm, n_ff)
                    .or_else(|| norm_if(Role::FfnDownNormIn, n_ff)),
                attn_norm: self.norm(a, Role::AttnNorm, n_embd),
                ffn_norm: self.norm(a, Role::FfnNorm, n_embd),
                attn_qkv,
                attn_output,
                ffn_gate_up,
                ffn_down,
            }
        });
        let blocks = blocks.collect();
        let output = self.ty(Role::Output, 0).map(|_| self.lm_head(a, Role::Output));
        Weights {
            token_embd: match &output {
                None => self.lm_head(a, Role::TokenEmbd),
                Some(_) if self.residency.embedding => {
                    self.vocabulary(a, Role::TokenEmbd, self.config.n_vocab, None)
                }
                Some(_) => self.slices(a, Role::TokenEmbd, Goes::Nowhere, KEPT_SLICE),
            },
            fetches_rows: !self.residency.embedding,
            output,
            output_norm: self.norm(a, Role::OutputNorm, n_embd),
            blocks,
        }
    }

    fn norm(&self, a: &mut Allocation<'_>, role: Role, n: usize) -> Norm {
        Norm { weight: a.buffer(role.name(), n), eps: self.config.eps }
    }

    /// The LM head, whole or in slices.
    fn lm_head(&self, a: &mut Allocation<'_>, role: Role) -> Vocabulary {
        match self.residency.lm_head {
            true => self.vocabulary(a, role, self.config.n_vocab, None),
            false => self.slices(a, role, Goes::InTurn, self.residency.bay),
        }
    }

    /// Bytes of the LM head.
    pub(super) fn lm_head_bytes(&self) -> u64 {
        let role = self.ty(Role::Output, 0).map_or(Role::TokenEmbd, |_| Role::Output);
        self.row_bytes(role) as u64 * self.config.n_vocab as u64
    }

    /// Bytes of a row of the embedding or of the LM head.
    fn row_bytes(&self, role: Role) -> usize {
        let k = self.config.n_embd;
        match self.format(role, 0) {
            Some(format) => 4 * (format.code_words(k) + format.scale_words(k)),
            None => k * self.dense_type(role).bytes(),
        }
    }

    /// A matrix with a row for each token, each slice of which is a portion of at most `most` bytes.
    fn slices(&self, a: &mut Allocation<'_>, role: Role, goes: Goes, most: u64) -> Vocabulary {
        let n_vocab = self.config.n_vocab;
        let fit = (most.saturating_sub(SLACK) as usize / self.row_bytes(role)).max(1);
        let unit = if fit < 32 { 1 } else { 32 };
        let most = fit / unit * unit;
        // Slices of about the same size, so that none has only a few rows.
        let each = n_vocab.div_ceil(n_vocab.div_ceil(most)).next_multiple_of(unit);
        // They have none, but a kernel binds some.
        let shifts = a.buffer("shifts", 1);
        let mut slice = |first: usize| {
            let rows = each.min(n_vocab - first);
            a.portion(goes, |a| self.vocabulary(a, role, rows, Some(&shifts))).0
        };
        let (first, others) = (slice(0), (each..n_vocab).step_by(each));
        Vocabulary::joined(first, others.map(slice))
    }

    fn dense_type(&self, role: Role) -> DenseType {
        match self.ty(role, 0) {
            Some(TensorType::F16) => DenseType::F16,
            _ => DenseType::F32,
        }
    }

    /// `rows` rows of a matrix with one for each token. Without `shifts` it has its own.
    fn vocabulary(
        &self,
        a: &mut Allocation<'_>,
        role: Role,
        rows: usize,
        shifts: Option<&Buffer<u32>>,
    ) -> Vocabulary {
        let k = self.config.n_embd;
        if let Some(format) = self.format(role, 0) {
            let shape = Stack { matrices: 1, parts: vec![rows], k, together: 1 };
            return Vocabulary::Packed(shape.packed(a, role.name(), format, 1.0));
        }
        let ty = self.dense_type(role);
        let shards = shards(a, role.name(), &[rows], k * ty.bytes(), 1);
        let shifts = shifts.cloned().unwrap_or_else(|| a.buffer("shifts", rows));
        Vocabulary::Dense(Dense { k, rows, ty, shards, shifts })
    }

    fn ty(&self, role: Role, block: usize) -> Option<TensorType> {
        let found = self.table.iter().find(|w| (w.role, w.block) == (role, block));
        found.map(|weight| weight.tensor.ty)
    }

    /// How the GPU holds a tensor of blocks; `None` if the tensor has no blocks.
    fn format(&self, role: Role, block: usize) -> Option<Format> {
        let row = block_type(self.ty(role, block)?)?;
        let scales = match row.scales {
            BlockScales::F16(_) => Scales::F16,
            BlockScales::Factors(_) => Scales::Factors(row.elements / row.group),
            BlockScales::WithOffsets(_) => Scales::F32WithOffset,
        };
        Some(Format { bits: row.bits, group: row.group, zero: row.zero, scales })
    }
}

/// Matrices of the shape `[matrices, rows, k]`. If possible, every `together` rows are in one
/// buffer.
struct Stack {
    matrices: usize,
    /// The numbers of rows that begin in buffers of their own. Their sum is `rows`.
    parts: Vec<usize>,
    k: usize,
    together: usize,
}

impl Stack {
    fn ternary(&self, a: &mut Allocation<'_>, label: &str) -> Ternary {
        let Self { matrices, ref parts, k, together } = *self;
        let rows = parts.iter().sum();
        Ternary {
            k,
            rows,
            matrices,
            shards: shards(a, label, parts, matrices * k / 4, together),
            scale: a.buffer(label, matrices * rows),
        }
    }

    fn packed(&self, a: &mut Allocation<'_>, label: &str, format: Format, factor: f32) -> Packed {
        let Self { matrices, ref parts, k, together } = *self;
        let rows = parts.iter().sum();
        let shards = shards(a, label, parts, 4 * matrices * format.code_words(k), together);
        let shards = shards.into_iter().map(|Shard { buffer, rows }| PackedShard {
            scales: a.buffer(label, matrices * rows.len() * format.scale_words(k)),
            codes: buffer,
            rows,
        });
        Packed { k, rows, matrices, format, factor, shards: shards.collect() }
    }
}

/// The fewest buffers that hold rows of `row_bytes`, each within a binding. Each of `parts` is a number of
/// rows that begin in a buffer of their own. If possible, every `together` rows are in one buffer.
fn shards(
    a: &mut Allocation<'_>,
    label: &str,
    parts: &[usize],
    row_bytes: usize,
    together: usize,
) -> Vec<Shard> {
    let fit = (a.gpu().max_binding as usize / row_bytes).max(1);
    let together = if together <= fit { together } else { 1 };
    let most = fit / together * together;
    let mut shards = Vec::new();
    let mut begin = 0;
    for rows in parts {
        // Shards of about the same size, so that none holds only a few rows.
        let each = rows.div_ceil(rows.div_ceil(most)).next_multiple_of(together);
        let end = begin + rows;
        for first in (begin..end).step_by(each) {
            let rows = first..(first + each).min(end);
            shards.push(Shard { buffer: a.buffer(label, rows.len() * row_bytes / 4), rows });
        }
        begin = end;
    }
    shards
}
