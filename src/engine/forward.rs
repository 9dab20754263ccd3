//! The forward pass as a list of kernels. [`crate::reference`] is the same list in plain Rust.

use std::ops::Range;

use super::adapters::Deltas;
use super::block::{Blocks, Width};
use super::head::lm_head_of_stream;
use super::state::{Fetched, State};
use super::weights::{Vocabulary, Weights};
use crate::compute::Site;
use crate::gpu::{Plan, Recorder};
use crate::kernels::{Added, Product};
use crate::model::Config;

/// All layers: they put keys and values into the cache, and the residual stream into `x`.
pub(super) fn layers(
    p: &mut Recorder,
    config: &Config,
    weights: &Weights,
    state: &State,
    width: Width,
) -> Plan {
    let all = Blocks::new(p, config, weights, state, width);
    blocks(p, &all, 0..weights.blocks.len(), Site::Down);
    // A step of one token that passes the stream on has made this already.
    let made = width == Width::Few || all.streamed.is_some();
    if let (Some((_, stream)), false) = (lm_head_of_stream(weights, state), made) {
        p.stream_of_last(&state.x, &weights.output_norm, stream);
    }
    p.finish()
}

/// Records the blocks of `range`, each as a segment of the plan. The last block ends with the
/// product of `last`. Before the first block of the model come the embeddings.
///
/// The plan uses only the weights of `range`, so a plan of all blocks gives the same bits as plans
/// of one block after the other.
pub(super) fn blocks(p: &mut Recorder, all: &Blocks<'_>, range: Range<usize>, last: Site) {
    let Blocks { weights, state, .. } = all;
    let Some(first) = weights.blocks.get(range.start) else { return };
    if range.start == 0 {
        embed(p, all);
    } else if let Some(streamed) = &all.streamed {
        p.stream_of_last(&state.x, &first.attn_norm, streamed.stream);
    }
    for n in range.clone() {
        let is_last = n + 1 == range.end;
        let next = match weights.blocks.get(n + 1) {
            Some(next) => (!is_last).then_some(&next.attn_norm),
            None => Some(&weights.output_norm),
        };
        all.block(p, n, if is_last { last } else { Site::Down }, next);
        p.end_segment();
    }
}

/// The embeddings of the step's tokens, as the residual stream and as the input of the first block.
fn embed(p: &mut Recorder, all: &Blocks<'_>) {
    let Blocks { config, weights, state, streamed, .. } = all;
    let State { tokens, x, fetched, .. } = state;
    let (embd, tokens) = match fetched {
        Some(Fetched { embd, ids }) => (embd, ids),
        None => (&weights.token_embd, tokens),
    };
    let scale = config.embedding_scale;
    let norm = weights.blocks.first().map(|block| &block.attn_norm);
    let deltas = state.deltas.as_ref();
    let adapted = deltas.and_then(|deltas| Some((deltas, deltas.embedding.as_ref()?)));
    // With adapters the stream is not passed on, so `x` alone has to be right.
    let y = adapted.map_or(x, |(deltas, _)| &deltas.apart);
    match (embd, streamed.as_ref().zip(norm)) {
        (Vocabulary::Packed(embd), Some((streamed, norm))) => {
            p.embed_stream(tokens, embd, scale, norm, y, streamed.stream);
        }
        (Vocabulary::Packed(embd), None) => p.embed_packed(tokens, embd, scale, y, all.has_rows()),
        (Vocabulary::Dense(embd), made) => {
            p.embed(tokens, embd, scale, y, all.has_rows());
            made.into_iter().for_each(|(made, norm)| p.stream_of_last(y, norm, made.stream));
        }
    }
    if let Some((Deltas { thin, apart, .. }, delta)) = adapted {
        p.embed(&state.tokens, &delta.rows, 1.0, thin, all.has_rows());
        let added = Added { wide: &delta.wide, u: thin };
        p.adapter_add(added, apart, x, Product::Store, all.batch());
    }
}
