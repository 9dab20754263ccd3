use super::attention::BINDINGS;
use super::{AttentionShape, KvCache, Partials, WORKGROUP};
use crate::gpu::{Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// Lanes that score a position.
const LANES: usize = 4;

/// How a workgroup takes heads and positions. A single token leaves most of a card idle: with less work
/// in each, there are more workgroups.
struct Work {
    /// Heads that read a key or a value together, at most.
    heads: usize,
    /// Positions that the same lanes score.
    each: usize,
}

/// Wider queries than these have [`Work`] that was faster for models of 4 to 8 billion weights on an
/// NVIDIA H200: by 2 % at 16 tokens of context, and by up to 1 % at 1024. At 1024, BitNet 2B-4T was 3 %
/// slower so.
const WIDE: usize = 2560;

fn work(shape: &AttentionShape) -> Work {
    if shape.n_head * shape.head_dim > WIDE {
        return Work { heads: 1, each: 1 };
    }
    // Longer heads take more registers.
    Work { heads: 2, each: if shape.head_dim > 128 { 1 } else { 2 } }
}

/// Positions that a workgroup takes at a time.
pub fn decoded_positions(shape: &AttentionShape) -> usize {
    work(shape).each * WORKGROUP as usize / LANES
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_decode",
    bindings: BINDINGS,
    variants: lanes_variants!("lanes", "group"; "shared/step", "shared/kv_row", "shared/kv_values", "attention_decode"),
    example: || consts(&AttentionShape::EXAMPLE),
};

fn heads(shape: &AttentionShape) -> usize {
    shape.heads_together(work(shape).heads)
}

fn consts(shape: &AttentionShape) -> Vec<Const> {
    let own = [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("LANES", LANES),
        Const::size("HEADS", heads(shape)),
        Const::size("EACH", work(shape).each),
    ];
    [shape.consts(), own.into()].concat()
}

impl Recorder<'_> {
    /// `softmax(q · k) v`, causal, of few tokens, over each split of the context. Takes heads that
    /// [`AttentionShape::fits_tiles`] accepts.
    pub fn attention_decode(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials) {
        let KvCache { shape, keys, values } = cache;
        self.dispatch(
            &KERNEL,
            &consts(shape),
            &[q, keys, values, &out.sums, &out.max_total],
            [
                Extent::Fixed((shape.n_head / heads(shape)) as u32),
                Extent::Splits,
                Extent::Tokens(1),
            ],
        );
    }
}
