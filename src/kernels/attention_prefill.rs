use super::attention::BINDINGS;
use super::attention::{AttentionShape, KvCache, Partials};
use super::step_rows::StepRows;
use crate::gpu::{Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Rows of a tile, one for each head of each token.
const TILE_ROWS: usize = 64;

/// The most heads whose rows are in one tile.
const MAX_HEADS: usize = 4;

/// Values of a head that one workgroup sums.
const MAX_VALUES: usize = 128;

/// Threads in a workgroup. Each computes an eighth of the rows, for a sixteenth of the keys or
/// values.
const WORKGROUP: u32 = 128;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_prefill",
    bindings: BINDINGS,
    variants: one_variant!(
        "shared/step",
        "shared/rows",
        "shared/kv_row",
        "shared/kv_values",
        "shared/cached_value",
        "attention_prefill"
    ),
    example: || consts(&AttentionShape::EXAMPLE, StepRows::Spans),
};

fn heads(shape: &AttentionShape) -> usize {
    shape.heads_together(MAX_HEADS)
}

fn tokens(shape: &AttentionShape) -> usize {
    TILE_ROWS / heads(shape)
}

fn consts(shape: &AttentionShape, rows: StepRows) -> Vec<Const> {
    let own = vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("TILE_ROWS", TILE_ROWS),
        Const::size("HEADS", heads(shape)),
        Const::size("TOKENS", tokens(shape)),
        Const::size("MAX_V_QUADS", MAX_VALUES / 4),
    ];
    [shape.consts(), rows.consts().into(), own].concat()
}

impl Recorder<'_> {
    /// `softmax(q · k) v`, causal, of many tokens, over each split of the context. The heads must
    /// be of a length that [`AttentionShape::fits_tiles`] accepts.
    pub fn attention_prefill(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials) {
        let KvCache { shape, keys, values } = cache;
        let parts = shape.head_dim.div_ceil(MAX_VALUES);
        let heads = Extent::Fixed((shape.n_head / heads(shape) * parts) as u32);
        let tokens = tokens(shape) as u32;
        self.dispatch(
            &KERNEL,
            &consts(shape, StepRows::None),
            &[q, keys, values, &out.sums, &out.max_total],
            [heads, Extent::Tokens(tokens), Extent::Splits],
        );
        let of_spans = [heads, Extent::LongestSpan(tokens), Extent::SplitsOfSpans];
        self.of_spans(&KERNEL, consts(shape, StepRows::Spans), of_spans);
    }
}
