//! A prompt in chunks of any size gives the same logits, to the last bit.

use ternlight::engine::Engine;
use ternlight::native::block_on;

use crate::setup::{Setup, engine, noise};

/// Tokens in the cache before the chunks begin, so that no chunk ends where attention splits the
/// context.
const CACHED: usize = 100;

/// The logits after `ids`, with at most `size` tokens in each call.
fn logits(engine: &Engine, ids: &[u32], size: usize) -> Vec<f32> {
    let (gpu, chunk) = (engine.gpu(), engine.chunk());
    let mut pos = 0;
    for cached in ids[..CACHED].chunks(chunk) {
        block_on(engine.prefill(cached, pos, pos + cached.len()).take(gpu)).unwrap();
        pos += cached.len();
    }
    loop {
        let end = (pos + chunk - (pos - CACHED) % chunk).min(ids.len());
        let n = match end - pos {
            left if left <= size => left,
            // A single token would go through other kernels.
            left if left == size + 1 => size - 1,
            _ => size,
        };
        if pos + n == ids.len() {
            return block_on(engine.prefill_and_read(&ids[pos..], pos).take(gpu)).unwrap();
        }
        block_on(engine.prefill(&ids[pos..pos + n], pos, end).take(gpu)).unwrap();
        pos += n;
    }
}

#[track_caller]
fn check(setup: &Setup, chunk: usize, length: usize, sizes: &[usize]) {
    let engine = engine(setup);
    assert_eq!(engine.chunk(), chunk);
    let ids = noise(length);
    let at_once = logits(&engine, &ids, engine.chunk());
    for &size in sizes {
        assert_eq!(logits(&engine, &ids, size), at_once, "{length} tokens by {size}");
    }
}

#[test]
fn chunks_on_a_cpu() {
    check(&Setup::default(), 64, 200, &[20, 33]);
}

/// A card splits the context for attention at multiples of 256, and from 1025 tokens on of 512.
#[test]
fn chunks_on_a_card() {
    check(&Setup::default().like_a_card(), 512, 1100, &[100]);
}

/// Rows of 4 x 128 floats, those of attention in four splits, are the widest.
#[test]
fn chunks_with_small_bindings() {
    let mut setup = Setup::default().like_a_card().no_subgroups();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(512 << 10);
    check(&setup, 256, 600, &[64, 100]);
}
