//! The size of the chunks does not change the logits by a bit.

use tritloom::engine::Engine;
use tritloom::native::block_on;

use crate::setup::{Setup, engine, noise};

/// Tokens in the cache before the chunks begin. Because of them, no chunk ends where attention
/// splits the context.
const CACHED: usize = 100;

/// The logits after `ids`, computed with at most `size` tokens in each call.
fn logits(engine: &Engine, ids: &[u32], size: usize) -> Vec<f32> {
    let chunk = engine.chunk();
    let mut pos = 0;
    for cached in ids[..CACHED].chunks(chunk) {
        block_on(engine.prefill(cached, pos, pos..pos + cached.len()).take()).unwrap();
        pos += cached.len();
    }
    loop {
        let begin = pos - (pos - CACHED) % chunk;
        let end = (begin + chunk).min(ids.len());
        let n = match end - pos {
            left if left <= size => left,
            // Leave no single token: other kernels would compute it.
            left if left == size + 1 => size - 1,
            _ => size,
        };
        if pos + n == ids.len() {
            return block_on(engine.prefill_and_read(&ids[pos..], pos, begin).take()).unwrap();
        }
        block_on(engine.prefill(&ids[pos..pos + n], pos, begin..end).take()).unwrap();
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
fn chunk_sizes_of_a_cpu_give_the_same_logits() {
    check(&Setup::default(), 64, 200, &[20, 33]);
}

/// For attention, a card splits the context at multiples of 256, and at multiples of 512 from 1025
/// tokens on. The last chunk is so short that its context is split at multiples of 128.
#[test]
fn chunk_sizes_of_a_card_give_the_same_logits() {
    check(&Setup { chunk: None, ..Setup::default().like_a_card() }, 1024, 1200, &[40, 100]);
}

/// The widest rows are attention's: 4 x 128 floats, for four splits.
#[test]
fn chunk_sizes_with_small_bindings_give_the_same_logits() {
    let mut setup = Setup::default().like_a_card().no_subgroups();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(512 << 10);
    check(&setup, 256, 600, &[64, 100]);
}
