use super::{AttentionShape, Parts, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_decode",
    bindings: &[
        ("step", Access::Uniform),
        ("queries", Access::Read),
        ("k_cache", Access::Read),
        ("v_cache", Access::Read),
        ("part", Access::Write),
        ("part_ml", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group"; "shared/step", "attention_decode"),
    example: &consts(&AttentionShape { n_head: 20, n_head_kv: 5, head_dim: 128, kv_f16: true }),
};

const fn consts(shape: &AttentionShape) -> [Const; 6] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("HEADS", heads_at_once(shape)),
        Const::U32("N_HEAD", shape.n_head as u32),
        Const::U32("N_HEAD_KV", shape.n_head_kv as u32),
        Const::U32("HEAD_DIM", shape.head_dim as u32),
        Const::Bool("KV_F16", shape.kv_f16),
    ]
}

/// The longest head for which everything fits into the 16 KiB of workgroup memory that every adapter has,
/// beside what reductions without subgroup operations take.
pub const MOST_DECODED_HEAD_DIM: usize = 128;

/// Query heads one workgroup works on: as many as share a KV head, up to the four of a vector.
const fn heads_at_once(shape: &AttentionShape) -> u32 {
    let group = shape.n_head / shape.n_head_kv;
    let mut heads = if group < 4 { group } else { 4 };
    while !group.is_multiple_of(heads) {
        heads -= 1;
    }
    heads as u32
}

/// `softmax(q · k) v` of one token, in `n_splits` parts of the context. Heads of at most
/// [`MOST_DECODED_HEAD_DIM`] values.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn attention_decode(
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
        &consts(shape),
        &[step, q, k_cache, v_cache, &out.part, &out.part_ml],
        [
            Extent::Fixed(shape.n_head as u32 / heads_at_once(shape)),
            Extent::Splits,
            Extent::Fixed(1),
        ],
    );
}
