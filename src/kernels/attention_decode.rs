use super::attention::BINDINGS;
use super::attention::{AttentionShape, KvCache, Partials};
use super::workgroups::WORKGROUP;
use crate::gpu::{Bound, Buffer, Const, Extent, Kernel, Recorder, Step};
use crate::lanes_variants;

/// Lanes that score a position.
const LANES: usize = 4;

/// Positions that a workgroup scores at once, if lanes share a single one.
const POSITIONS: usize = WORKGROUP as usize / LANES;

/// Positions of a text that is short: in splits of [`SHORT_SPLIT`], which the product after attention
/// merges four at a time.
pub const SHORT: usize = 4 * SHORT_SPLIT;

/// Positions of a split of a short text.
pub const SHORT_SPLIT: usize = POSITIONS;

/// How a workgroup takes heads and positions. A single token leaves most of a card idle: with less work
/// in each, there are more workgroups.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Heads that read a key or a value together, at most.
    heads: usize,
    /// Positions that the same lanes score.
    each: usize,
    /// Whether that is always a whole split.
    one_tile: bool,
}

/// With short splits, a workgroup takes less. On an NVIDIA H200 BitNet 2B-4T decodes 3 % faster so, from
/// 16 to 256 positions; at 1024, it was 3 % slower.
pub(super) const SHORT_WORK: Work = Work { heads: 1, each: 1, one_tile: true };

pub(super) fn work(shape: &AttentionShape) -> Work {
    // Longer heads take more registers.
    Work { heads: 2, each: if shape.head_dim > 128 { 1 } else { 2 }, one_tile: false }
}

/// Whether every token's splits are short. A split of [`SHORT_SPLIT`] has the same bits either way:
/// whatever [`work`] takes beyond its end adds zeros. So a text is the same alone and in a batch.
pub(super) fn is_short(step: &Step) -> bool {
    let mut rows = step.rows.iter().take(step.n_tokens as usize);
    rows.all(|row| row.split_len as usize <= SHORT_SPLIT)
}

/// Positions that a workgroup takes at a time where splits are long.
pub fn decoded_positions(shape: &AttentionShape) -> usize {
    work(shape).each * POSITIONS
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_decode",
    bindings: BINDINGS,
    variants: lanes_variants!("lanes", "group";
        "shared/step",
        "shared/kv_row",
        "shared/kv_values",
        "shared/cached_value",
        "shared/attention_of_few",
        "attention_decode"
    ),
    example: || consts(&AttentionShape::EXAMPLE, work(&AttentionShape::EXAMPLE)),
};

pub(super) fn consts(shape: &AttentionShape, work: Work) -> Vec<Const> {
    let own = [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("LANES", LANES),
        Const::size("HEADS", shape.heads_together(work.heads)),
        Const::size("EACH", work.each),
        Const::Bool("ONE_TILE", work.one_tile),
    ];
    [shape.consts(), own.into()].concat()
}

pub(super) fn workgroups(shape: &AttentionShape, work: Work) -> [Extent; 3] {
    let heads = shape.n_head / shape.heads_together(work.heads);
    [Extent::Fixed(heads as u32), Extent::Splits, Extent::Tokens(1)]
}

impl Recorder<'_> {
    /// `softmax(q · k) v`, causal, of few tokens, over each split of the context. Takes heads that
    /// [`AttentionShape::fits_tiles`] accepts.
    pub fn attention_decode(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials) {
        let KvCache { shape, keys, values } = cache;
        let buffers: [&dyn Bound; 5] = [q, keys, values, &out.sums, &out.max_total];
        let work = work(shape);
        self.dispatch(&KERNEL, &consts(shape, work), &buffers, workgroups(shape, work));
        let (consts, workgroups) = (consts(shape, SHORT_WORK), workgroups(shape, SHORT_WORK));
        self.instead(is_short, &KERNEL, &consts, workgroups);
    }
}
