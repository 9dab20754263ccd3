use super::attention::BINDINGS;
use super::attention::{AttentionShape, KvCache, Partials};
use super::workgroups::WORKGROUP;
use crate::gpu::{Bound, Buffer, Const, Extent, Kernel, Recorder, Step};
use crate::lanes_variants;

/// Lanes that score a position.
const LANES: usize = 4;

/// Positions that a workgroup scores at once, if the lanes score one position each time.
const POSITIONS: usize = WORKGROUP as usize / LANES;

/// The most positions of a short sequence. It has splits of [`SHORT_SPLIT`], which the product
/// after attention merges four at a time.
pub const SHORT: usize = 4 * SHORT_SPLIT;

/// Positions of a split of a short sequence.
pub const SHORT_SPLIT: usize = POSITIONS;

/// How a workgroup takes heads and positions. A single token leaves most of a card idle. If each
/// workgroup has less work, there are more workgroups.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// The most heads that read a key or a value together.
    heads: usize,
    /// Positions that each group of lanes scores.
    each: usize,
    /// Whether these positions are always a whole split.
    one_tile: bool,
}

/// The work for short splits, which is less. On an NVIDIA H200, BitNet 2B-4T decodes 3 % faster
/// with it from 16 to 256 positions. At 1024 positions it was 3 % slower.
pub(super) const SHORT_WORK: Work = Work { heads: 1, each: 1, one_tile: true };

pub(super) fn work(shape: &AttentionShape) -> Work {
    // Longer heads take more registers.
    Work { heads: 2, each: if shape.head_dim > 128 { 1 } else { 2 }, one_tile: false }
}

/// Whether the splits of every token are short. A split of [`SHORT_SPLIT`] gives the same bits with
/// either work, because positions that [`work`] takes beyond its end add zeros. So a sequence gets
/// the same results alone and in a batch.
pub(super) fn is_short(step: &Step) -> bool {
    let mut rows = step.rows.iter().take(step.n_tokens as usize);
    rows.all(|row| row.split_len as usize <= SHORT_SPLIT)
}

/// Positions that a workgroup takes at a time if splits are long.
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
    /// `softmax(q · k) v`, causal, of few tokens, over each split of the context. The heads must be
    /// of a length that [`AttentionShape::fits_tiles`] accepts.
    pub fn attention_decode(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials) {
        let KvCache { shape, keys, values } = cache;
        let buffers: [&dyn Bound; 5] = [q, keys, values, &out.sums, &out.max_total];
        let work = work(shape);
        self.dispatch(&KERNEL, &consts(shape, work), &buffers, workgroups(shape, work));
        let (consts, workgroups) = (consts(shape, SHORT_WORK), workgroups(shape, SHORT_WORK));
        self.instead(is_short, &KERNEL, &consts, workgroups);
    }
}
