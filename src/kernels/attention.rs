use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::one_variant;

/// Heads of an attention layer and how its cache is held.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads.
    pub n_head: usize,
    /// Key and value heads; each serves `n_head / n_head_kv` query heads.
    pub n_head_kv: usize,
    /// Values in a head, a multiple of 8.
    pub head_dim: usize,
    /// Whether the cache holds f16; f32 otherwise.
    pub kv_f16: bool,
}

/// The longest head for which `attention_decode` and `attention_prefill` fit into the 16 KiB of workgroup
/// memory that every adapter has, beside what reductions without subgroup operations take.
pub const MAX_HEAD_DIM: usize = 128;

/// Partial results of attention over parts of the context.
pub struct Parts {
    /// `[n_tokens, n_splits, n_head, head_dim]`, not normalised.
    pub part: Buffer<f32>,
    /// `[n_tokens, n_splits, n_head]`: the largest score and the sum of the exponentials.
    pub part_ml: Buffer<[f32; 2]>,
}

impl AttentionShape {
    /// The 2B-4T model's, for [`Kernel::example`].
    pub(super) const EXAMPLE: Self = Self { n_head: 20, n_head_kv: 5, head_dim: 128, kv_f16: true };

    /// Bytes the cache of `n_ctx` positions takes, of keys or of values.
    pub const fn cache_bytes(&self, n_ctx: usize) -> usize {
        n_ctx * self.n_head_kv * self.head_dim * if self.kv_f16 { 2 } else { 4 }
    }

    /// What the attention kernels know of it, `heads` being worked on together.
    pub(super) const fn consts(&self, heads: u32) -> [Const; 5] {
        [
            Const::U32("HEADS", heads),
            Const::U32("N_HEAD", self.n_head as u32),
            Const::U32("N_HEAD_KV", self.n_head_kv as u32),
            Const::U32("HEAD_DIM", self.head_dim as u32),
            Const::Bool("KV_F16", self.kv_f16),
        ]
    }

    /// Query heads that are worked on together as the parts of a vector of `parts`: as many of those that
    /// share a KV head as fit.
    pub(super) const fn heads_in_vector(&self, parts: usize) -> u32 {
        let group = self.n_head / self.n_head_kv;
        let mut heads = if group < parts { group } else { parts };
        while !group.is_multiple_of(heads) {
            heads -= 1;
        }
        heads as u32
    }

    /// Query heads one workgroup works on: as many as share a KV head and have threads.
    const fn heads_at_once(&self) -> usize {
        let group = self.n_head / self.n_head_kv;
        let mut heads = group;
        while heads > 1
            && (!group.is_multiple_of(heads) || heads * self.head_dim / 2 > WORKGROUP as usize)
        {
            heads -= 1;
        }
        heads
    }
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention",
    bindings: &[
        ("step", Access::Step),
        ("q", Access::Read),
        ("k_cache", Access::Read),
        ("v_cache", Access::Read),
        ("part", Access::Write),
        ("part_ml", Access::Write),
    ],
    variants: one_variant!("shared/step", "attention"),
    example: &AttentionShape::EXAMPLE.consts(AttentionShape::EXAMPLE.heads_at_once() as u32),
};

/// `softmax(q · k) v`, causal, in `n_splits` parts of the context each.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn attention(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    shape: &AttentionShape,
    q: &Buffer<f32>,
    k_cache: &Buffer<u32>,
    v_cache: &Buffer<u32>,
    out: &Parts,
) {
    recorder.dispatch(
        plan,
        &KERNEL,
        &shape.consts(shape.heads_at_once() as u32),
        &[step, q, k_cache, v_cache, &out.part, &out.part_ml],
        [
            Extent::Fixed((shape.n_head / shape.heads_at_once()) as u32),
            Extent::Tokens(1),
            Extent::Splits,
        ],
    );
}
