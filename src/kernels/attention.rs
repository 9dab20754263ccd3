use super::step_rows::StepRows;
use super::workgroups::WORKGROUP;
use crate::compute::KvType;
use crate::gpu::{Access, Binding, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// The heads of an attention layer, and how its cache is held.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads. Each serves `n_head / n_head_kv` query heads.
    pub n_head_kv: usize,
    /// Values in a head, a multiple of 8.
    pub head_dim: usize,
    /// How the cache holds keys and values.
    pub kv: KvType,
}

/// The keys and values of one layer.
pub struct KvCache {
    /// The heads that it holds, and how it holds them.
    pub shape: AttentionShape,
    /// A row for each position, see [`AttentionShape::row_words`].
    pub keys: Buffer<u32>,
    /// The values, in rows like those of `keys`.
    pub values: Buffer<u32>,
}

/// The results of attention over each split of the context.
pub struct Partials {
    /// The heads of the results.
    pub shape: AttentionShape,
    /// `[n_tokens, n_splits, n_head, head_dim]`: the sums of values, which are not normalised yet.
    pub sums: Buffer<f32>,
    /// `[n_tokens, n_splits, n_head]`: the largest score and the sum of the exponentials.
    pub max_total: Buffer<[f32; 2]>,
}

/// The longest head for which `attention_decode` and `attention_prefill` fit into the 16 KiB of
/// workgroup memory that every adapter has. Reductions without subgroup operations take some of it.
const MAX_HEAD_DIM: usize = 256;

impl AttentionShape {
    /// Whether `attention_decode` and `attention_prefill` take heads of this length.
    pub fn fits_tiles(&self) -> bool {
        self.head_dim <= 128 || self.head_dim == MAX_HEAD_DIM
    }

    /// The shape of the 2B-4T model, for [`Kernel::example`].
    pub const EXAMPLE: Self = Self { n_head: 20, n_head_kv: 5, head_dim: 128, kv: KvType::F16 };

    /// Whether the cache can hold heads of this length. Kernels load 16 bytes of a key at once.
    pub const fn fits_rows(&self) -> bool {
        (self.head_dim * self.kv.bits()).is_multiple_of(128)
    }

    /// Words of the keys, or of the values, of one position: `[n_head_kv, head_dim]`. int8 values
    /// are followed by their scales `[n_head_kv]`, which are padded to 16 bytes.
    pub const fn row_words(&self) -> usize {
        let scales = match self.kv {
            KvType::Int8 => self.n_head_kv.next_multiple_of(4),
            KvType::F16 | KvType::F32 => 0,
        };
        self.n_head_kv * self.head_dim * self.kv.bits() / 32 + scales
    }

    /// The bytes of the keys, or of the values, of `n_ctx` positions.
    pub const fn cache_bytes(&self, n_ctx: usize) -> usize {
        n_ctx * self.row_words() * size_of::<u32>()
    }

    /// The constants of a row of the cache.
    pub fn cache_consts(&self) -> [Const; 2] {
        [Const::size("KV_BITS", self.kv.bits()), Const::size("KV_ROW", self.row_words())]
    }

    /// The constants of the shape.
    pub(super) fn consts(&self) -> Vec<Const> {
        let heads = [
            Const::size("N_HEAD", self.n_head),
            Const::size("N_HEAD_KV", self.n_head_kv),
            Const::size("HEAD_DIM", self.head_dim),
            Const::size("N_Q", self.n_head * self.head_dim),
            Const::size("N_KV", self.n_head_kv * self.head_dim),
        ];
        [&heads[..], &self.cache_consts()].concat()
    }

    /// Query heads that one workgroup computes. They share a KV head. Their number is at most
    /// `most`, and the same in every workgroup.
    pub(super) fn heads_together(&self, most: usize) -> usize {
        let group = self.n_head / self.n_head_kv;
        (1..=group.min(most)).rev().find(|&heads| group.is_multiple_of(heads)).unwrap_or(1)
    }
}

/// The bindings of all kernels that compute [`Partials`].
pub(super) const BINDINGS: &[Binding] = &[
    ("step", Access::Step),
    ("queries", Access::Read),
    ("k_cache", Access::Read),
    ("v_cache", Access::Read),
    ("partial_sums", Access::Write),
    ("partial_max_total", Access::Write),
];

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention",
    bindings: BINDINGS,
    variants: one_variant!(
        "shared/step",
        "shared/rows",
        "shared/kv_row",
        "shared/kv_values",
        "attention"
    ),
    example: || consts(&AttentionShape::EXAMPLE, 4, StepRows::Tokens),
};

fn consts(shape: &AttentionShape, heads: usize, rows: StepRows) -> Vec<Const> {
    let tile = tile(shape);
    let own = vec![
        Const::size("HEADS", heads),
        Const::size("TILE", tile),
        Const::size("WORKGROUP", heads * tile),
    ];
    [shape.consts(), rows.consts().into(), own].concat()
}

/// The positions that are computed at a time: as many as a head has pairs of values.
fn tile(shape: &AttentionShape) -> usize {
    shape.head_dim / 2
}

impl Recorder<'_> {
    /// `softmax(q · k) v`, causal, over each split of the context. `rows` says whether the step has
    /// rows.
    pub fn attention(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials, rows: bool) {
        let KvCache { shape, keys, values } = cache;
        let heads = shape.heads_together(WORKGROUP as usize / tile(shape));
        let workgroups =
            [Extent::Fixed((shape.n_head / heads) as u32), Extent::Tokens(1), Extent::Splits];
        self.dispatch(
            &KERNEL,
            &consts(shape, heads, StepRows::of_tokens(rows)),
            &[q, keys, values, &out.sums, &out.max_total],
            workgroups,
        );
        if !rows {
            self.of_spans(&KERNEL, consts(shape, heads, StepRows::Spans), workgroups);
        }
    }
}
