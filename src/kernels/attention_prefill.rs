use super::attention::BINDINGS;
use super::attention::{AttentionShape, KvCache, Partials};
use crate::gpu::{Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Rows of a tile, one for each head of each token.
const ROWS: usize = 64;

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
        "shared/kv_row",
        "shared/kv_values",
        "shared/cached_value",
        "attention_prefill"
    ),
    example: || consts(&AttentionShape::EXAMPLE),
};

fn heads(shape: &AttentionShape) -> usize {
    shape.heads_together(MAX_HEADS)
}

fn tokens(shape: &AttentionShape) -> usize {
    ROWS / heads(shape)
}

fn consts(shape: &AttentionShape) -> Vec<Const> {
    let own = [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("ROWS", ROWS),
        Const::size("HEADS", heads(shape)),
        Const::size("TOKENS", tokens(shape)),
        Const::size("MAX_V_QUADS", MAX_VALUES / 4),
    ];
    [shape.consts(), own.into()].concat()
}

impl Recorder<'_> {
    /// `softmax(q · k) v`, causal, of many tokens, over each split of the context. The heads must
    /// be of a length that [`AttentionShape::fits_tiles`] accepts.
    pub fn attention_prefill(&mut self, q: &Buffer<f32>, cache: &KvCache, out: &Partials) {
        let KvCache { shape, keys, values } = cache;
        let parts = shape.head_dim.div_ceil(MAX_VALUES);
        self.dispatch(
            &KERNEL,
            &consts(shape),
            &[q, keys, values, &out.sums, &out.max_total],
            [
                Extent::Fixed((shape.n_head / heads(shape) * parts) as u32),
                Extent::Tokens(tokens(shape) as u32),
                Extent::Splits,
            ],
        );
        self.for_each_span();
    }
}
