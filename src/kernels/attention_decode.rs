use super::attention::BINDINGS;
use super::{AttentionShape, KvCache, Partials, WORKGROUP};
use crate::gpu::{Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// Heads that read a key or a value together, at most. Two rather than four make twice the
/// workgroups, each with half the work: a single token leaves most of a card idle.
const MAX_HEADS: usize = 2;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_decode",
    bindings: BINDINGS,
    variants: lanes_variants!("lanes", "group"; "shared/step", "shared/kv_row", "shared/kv_values", "attention_decode"),
    example: || consts(&AttentionShape::EXAMPLE),
};

fn heads(shape: &AttentionShape) -> usize {
    shape.heads_together(MAX_HEADS)
}

fn consts(shape: &AttentionShape) -> Vec<Const> {
    let own = [Const::U32("WORKGROUP", WORKGROUP), Const::size("HEADS", heads(shape))];
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
