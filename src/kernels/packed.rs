//! Matrices of codes with a scale for each group, in the form that kernels read.

use super::rows::{RowGroups, ShardRows};
use super::weight::Product;
use super::workgroups::WORKGROUP;
use crate::gpu::{Bound, Buffer, Const, Extent, Kernel, Recorder, Tuning, Used};
use std::ops::Range;

/// How the values of a [`Packed`] matrix are held: `scale * (code - zero) - offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of a code: 1, 2, 4 or 8. A code of 1 bit is 0 or 2.
    pub bits: u32,
    /// Values that share a scale: 16 (only with 8 bits) or a multiple of 32. With 2 bits, it is a
    /// multiple of 64; with 1 bit, of 128.
    pub group: usize,
    /// The code of the value 0. With 8 bits it is always 128, with 1 bit always 1.
    pub zero: i32,
    /// The scales of its groups.
    pub scales: Scales,
}

/// How a [`Packed`] matrix holds the scale of each group of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scales {
    /// An f16 scale. A row has an even number of scales. The last one may be unused.
    F16,
    /// An int8 factor, and an f16 that this many neighbouring groups share. Their product is the
    /// scale. A row has first its f16, an even number as in `F16`, then its factors. Not with 1 or
    /// 2 bits.
    Factors(usize),
    /// An f32 scale and an f32 offset. Not with 1 or 2 bits.
    F32WithOffset,
}

/// A matrix `[matrices, rows, k]` of codes with a scale for each group of a row.
///
/// Matrices with the same input are stacked as in [`Ternary`](super::weight::Ternary).
pub struct Packed {
    /// Values in a row, a multiple of [`Format::unit`].
    pub k: usize,
    /// Rows of each matrix.
    pub rows: usize,
    /// The number of matrices: 1, or 2 for gate and up.
    pub matrices: usize,
    /// How values are held.
    pub format: Format,
    /// Multiplies every product with the matrix. It has to be 1 for gate and up, whose kernels need not
    /// apply it.
    pub factor: f32,
    /// The rows. Each shard holds its rows of the first matrix, then those of the second.
    pub shards: Vec<PackedShard>,
}

/// Neighbouring rows of a [`Packed`] matrix.
#[derive(Clone)]
pub struct PackedShard {
    /// `[matrices, rows, k * bits / 32]` words of codes, in the order of
    /// [`blocks::pack`](crate::blocks::pack).
    pub codes: Buffer<u32>,
    /// `[matrices, rows, Format::scale_words(k)]`.
    pub scales: Buffer<u32>,
    /// The rows, counted in the whole matrix.
    pub rows: Range<usize>,
}

/// int8 activations with a scale for every 32, in the order of `shaders/shared/groups.wgsl`.
#[derive(Clone)]
pub struct QuantizedGroups {
    /// `[n_tokens, QuantizedGroups::words(k)]` words of four values.
    pub q: Buffer<u32>,
    /// `[n_tokens, QuantizedGroups::scales(k)]`: the scale, and the scale times the sum of the
    /// group's values.
    pub scale: Buffer<[f32; 2]>,
    /// `[n_tokens]`: a factor of all values of a token.
    pub factor: Buffer<f32>,
}

/// The residual stream of one token, times the weight of the norm that comes next, as int8 with a
/// scale for every 32 values. All of it is in one buffer, because a kernel may bind only eight.
pub struct Stream {
    /// The words of [`QuantizedGroups::q`], then those of [`QuantizedGroups::scale`], then for each
    /// group the sum of the squares of its values before the weight. Padded to a multiple of four
    /// words, see [`Stream::words`].
    pub words: Buffer<u32>,
}

impl QuantizedGroups {
    /// Words of a token's `k` values.
    pub const fn words(k: usize) -> usize {
        k.div_ceil(512) * 128
    }

    /// Scales of a token's `k` values.
    pub const fn scales(k: usize) -> usize {
        k.div_ceil(64) * 2
    }

    /// The index of the word that holds the values `4 * i` to `4 * i + 3` of a token.
    pub const fn word_at(i: usize) -> usize {
        let sixteen = i / 4;
        (sixteen / 32 * 32 + sixteen % 4 * 8 + sixteen / 4 % 8) * 4 + i % 4
    }
}

impl Stream {
    /// Words of a residual stream of `k` values.
    pub const fn words(k: usize) -> usize {
        QuantizedGroups::words(k) + 2 * QuantizedGroups::scales(k) + k.div_ceil(128) * 4
    }
}

impl Packed {
    /// The matrix with those shards alone that are within `rows`, as
    /// [`Ternary::part`](super::weight::Ternary::part).
    pub fn part(&self, rows: &Range<usize>) -> Self {
        let within = |shard: &&PackedShard| rows.contains(&shard.rows.start);
        let shards = self.shards.iter().filter(within).cloned().collect();
        Self { shards, ..*self }
    }

    /// Stacked matrices as one, as [`Ternary::one_below_the_other`](super::weight::Ternary::one_below_the_other).
    pub fn one_below_the_other(&self) -> Self {
        let Self { rows, matrices, .. } = *self;
        let shards = (0..matrices).flat_map(|matrix| {
            self.shards.iter().map(move |shard| {
                let of_matrix = |buffer: &Buffer<u32>| {
                    let words = buffer.len() / matrices;
                    buffer.range(matrix * words, words)
                };
                PackedShard {
                    codes: of_matrix(&shard.codes),
                    scales: of_matrix(&shard.scales),
                    rows: matrix * rows + shard.rows.start..matrix * rows + shard.rows.end,
                }
            })
        });
        let shards = shards.collect();
        Self { rows: matrices * rows, matrices: 1, shards, ..*self }
    }

    /// Whether every 32 rows are in one shard. Their results share a scale when they are
    /// activations.
    pub fn ends_with_groups(&self) -> bool {
        self.shards.iter().all(|shard| shard.rows.end.is_multiple_of(32))
    }

    /// The codes and the scales of a shard, if a step uses one row for each token. The row is in
    /// one of the shards.
    pub(super) fn looked_up(&self, shard: &PackedShard) -> [Buffer<u32>; 2] {
        let share = |words: usize| Used::Tokens((4 * words * shard.rows.len() / self.rows) as u64);
        [
            shard.codes.clone().using(share(self.format.code_words(self.k))),
            shard.scales.clone().using(share(self.format.scale_words(self.k))),
        ]
    }
}

impl Format {
    /// Ternary codes in groups of 64 with f16 scales, for [`Kernel::example`].
    pub(super) const EXAMPLE: Self = Self { bits: 2, group: 64, zero: 1, scales: Scales::F16 };

    /// Whether codes have 1 or 2 bits. The kernels of one token take no others.
    pub const fn is_ternary(&self) -> bool {
        self.bits <= 2
    }

    /// Values that a lane reads in one step.
    pub const fn unit(&self) -> usize {
        if self.is_ternary() { 128 / self.bits as usize } else { 32 }
    }

    /// Words of codes in a row of `k` values.
    pub const fn code_words(&self, k: usize) -> usize {
        k * self.bits as usize / 32
    }

    /// Words of scales and offsets in a row of `k` values.
    pub const fn scale_words(&self, k: usize) -> usize {
        let groups = k.div_ceil(self.group);
        match self.scales {
            Scales::F16 => self.f16_words(k),
            Scales::Factors(_) => self.f16_words(k) + groups.div_ceil(4),
            Scales::F32WithOffset => 2 * groups,
        }
    }

    /// Words of f16 in a row of `k` values.
    const fn f16_words(&self, k: usize) -> usize {
        k.div_ceil(self.group * self.groups_of_f16()).div_ceil(2)
    }

    /// The number of groups that share an f16.
    const fn groups_of_f16(&self) -> usize {
        match self.scales {
            Scales::Factors(groups) => groups,
            Scales::F16 | Scales::F32WithOffset => 1,
        }
    }

    /// The constants of a matrix of this format.
    pub(super) fn consts(&self, k: usize) -> Vec<Const> {
        vec![
            Const::U32("BITS", self.bits),
            Const::size("GROUP", self.group),
            Const::U32("ZERO", self.zero as u32),
            Const::Bool("SCALE_F16", self.scales == Scales::F16),
            Const::Bool("OFFSETS", self.scales == Scales::F32WithOffset),
            Const::size("SCALE_WORDS", self.scale_words(k)),
            Const::size("GROUPS_OF_F16", self.groups_of_f16()),
            Const::size("F16_WORDS", self.f16_words(k)),
        ]
    }
}

/// Tokens that are computed at a time, if there are several.
const TOKENS: u32 = 4;

/// A product of a packed matrix, as one dispatch for each shard.
pub(super) struct PackedProduct<'a> {
    pub(super) kernel: &'static Kernel,
    pub(super) w: &'a Packed,
    pub(super) product: Product,
    /// Whether there are several tokens.
    pub(super) several: bool,
    /// The buffers that the kernel binds after `w` and `w_scale`.
    pub(super) buffers: &'a [&'a dyn Bound],
}

impl PackedProduct<'_> {
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        const MAX: usize = 65_535;
        let Self { kernel, w, product, several, .. } = self;
        debug_assert_eq!(w.matrices, product.matrices(), "{}: {product:?}", kernel.name);
        let tuning = recorder.tuning();
        let groups = row_groups(w.k, product, tuning.lanes);
        let (tokens, along) =
            if several { (TOKENS, Extent::Tokens(TOKENS)) } else { (1, Extent::Fixed(1)) };
        for PackedShard { codes, scales, rows } in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: rows.clone() };
            let own = consts(&rows, w, product, tuning.has_packed_dot(), (groups, tokens));
            let buffers = [&[codes as &dyn Bound, scales], self.buffers].concat();
            let workgroups = (rows.shard.len() * w.matrices).div_ceil(groups.rows());
            let extents = [
                Extent::Fixed(workgroups.min(MAX) as u32),
                along,
                Extent::Fixed(workgroups.div_ceil(MAX) as u32),
            ];
            recorder.dispatch(kernel, &own, &buffers, extents);
        }
    }
}

/// The fewest lanes for a row in the kernels of one token whose workgroups have 32 rows.
pub const MIN_LANES: u32 = WORKGROUP / 32;

/// Lanes that share a row of `k` values of a packed matrix, if the adapter is given `lanes` or
/// more. Sums of floats depend on this number. So it is the same in every kernel that computes a
/// row, because a token must give the same bits alone and among others.
pub(super) fn lanes_of(k: usize, product: Product, lanes: u32) -> u32 {
    lanes.min(match product {
        // A team has two pairs of such rows. It reads the activations once for both.
        Product::Gated(_) if k.is_multiple_of(4096) => 16,
        Product::Gated(_) => 8,
        Product::Store => 16,
        Product::Add => 32,
    })
}

fn row_groups(k: usize, product: Product, lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes: lanes_of(k, product, lanes), each: 1 }
}

/// The constants that all products of packed matrices have in common.
pub(super) fn packed_consts(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    packed_dot: bool,
) -> Vec<Const> {
    let own = vec![Const::F32("FACTOR", w.factor), Const::Bool("PACKED_DOT", packed_dot)];
    [rows.consts(), product.consts(), w.format.consts(rows.k), own].concat()
}

/// The constants of the kernels of one token. A workgroup has 32 rows, or 32 pairs of gate and up.
pub(super) fn teams_consts(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    tuning: &Tuning,
) -> Vec<Const> {
    let lanes = lanes_of(w.k, product, tuning.lanes);
    let workgroup = match product {
        Product::Add => tuning.stream_threads.min(32 * lanes),
        Product::Store | Product::Gated(_) => WORKGROUP,
    };
    let each = 32 * product.matrices() as u32 * lanes / workgroup;
    let groups = RowGroups { workgroup, lanes, each };
    [packed_consts(rows, w, product, tuning.has_packed_dot()), groups.consts()].concat()
}

fn consts(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    packed_dot: bool,
    (groups, tokens): (RowGroups, u32),
) -> Vec<Const> {
    let own = vec![Const::U32("TOKENS", tokens)];
    [packed_consts(rows, w, product, packed_dot), groups.consts(), own].concat()
}

/// A matrix and its rows, for [`Kernel::example`].
pub(super) fn example_matrix(matrices: usize) -> (ShardRows, Packed) {
    let (k, rows) = (9728, 6144);
    let format = Format::EXAMPLE;
    let w = Packed { k, rows, matrices, format, factor: 1.0, shards: Vec::new() };
    (ShardRows { k, all: rows, shard: 0..rows }, w)
}

/// The constants of a product, for [`Kernel::example`].
pub(super) fn example() -> Vec<Const> {
    let product = Product::EXAMPLE;
    let (rows, w) = example_matrix(product.matrices());
    consts(&rows, &w, product, true, (row_groups(rows.k, product, 32), TOKENS))
}
