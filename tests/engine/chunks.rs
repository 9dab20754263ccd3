//! A prompt in pieces of any size gives the same numbers.

use ternlight::engine::{Engine, EngineOptions};
use ternlight::gguf::Gguf;
use ternlight::model::{Config, weights::weights};
use ternlight::native::block_on;
use ternlight::session::GenerateOptions;
use ternlight::source::Reader;

use crate::setup::{Setup, generate, greedy, small};
use crate::support::Kv;

/// Tokens that are in the cache already, so that steps of a power of two do not end where the context is
/// split differently.
const CACHED: usize = 100;

/// The small model by itself: who calls the engine decides on the pieces.
pub(crate) fn engine(setup: &Setup) -> Engine {
    let mut file = small();
    file.set("bitnet-b1.58.context_length", Kv::U32(2200));
    let bytes = file.build();
    let mut reader = Reader::new(&bytes[..]);
    block_on(async {
        let gguf = Gguf::read(&mut reader).await.unwrap();
        let config = Config::from_gguf(&gguf).unwrap();
        let table = weights(&config, &gguf).unwrap();
        let options = EngineOptions::default();
        Engine::load(setup.open(), config, &table, &mut reader, &options, &mut |_| {})
            .await
            .unwrap()
    })
}

/// The logits after `ids`, each step of them in pieces of `piece` tokens.
fn logits(engine: &Engine, ids: &[u32], piece: usize) -> Vec<f32> {
    let (gpu, chunk) = (engine.gpu(), engine.chunk());
    let mut pos = 0;
    for cached in ids[..CACHED].chunks(chunk) {
        block_on(engine.prefill(cached, pos, pos + cached.len()).take(gpu)).unwrap();
        pos += cached.len();
    }
    loop {
        let end = (pos + chunk - (pos - CACHED) % chunk).min(ids.len());
        let n = match end - pos {
            left if left <= piece => left,
            left if left == piece + 1 => piece - 1,
            _ => piece,
        };
        if pos + n == ids.len() {
            return block_on(engine.prefill_and_read(&ids[pos..], pos).take(gpu)).unwrap();
        }
        block_on(engine.prefill(&ids[pos..pos + n], pos, end).take(gpu)).unwrap();
        pos += n;
    }
}

/// To the last bit, although a card splits the context for attention at multiples of 256, and from 1025
/// tokens on of 512.
#[test]
fn a_prompt_in_pieces_is_the_prompt_at_once() {
    let small_bindings = || {
        let mut setup = Setup::default().like_a_card();
        setup.gpu.limits.max_storage_buffer_binding_size = Some(512 << 10);
        setup
    };
    let card = || Setup::default().like_a_card();
    for (setup, room, length, pieces) in [
        (Setup::default(), 64, 200, [20, 33]),
        (card(), 512, 1300, [64, 100]),
        (card().no_subgroups(), 512, 400, [64, 100]),
        // Rows of 4 x 128 floats, those of attention in four parts, are the widest.
        (small_bindings(), 256, 1300, [64, 100]),
    ] {
        let engine = engine(&setup);
        assert_eq!(engine.chunk(), room);
        let ids: Vec<u32> = (0..length).map(|i| (i * i + 7 * i) % 264).collect();
        let at_once = logits(&engine, &ids, engine.chunk());
        for piece in pieces {
            assert_eq!(logits(&engine, &ids, piece), at_once, "{length} tokens by {piece}");
        }
    }
}

/// A session feels its way with the first prompt, and knows the card's speed at the next.
#[test]
fn the_first_prompt_is_read_as_later_ones_are() {
    let prompt: Vec<u32> = (0..700u32).map(|i| (i * i + 7 * i) % 264).collect();
    let mut session = Setup::default().like_a_card().small();
    let options = GenerateOptions { prompt_lookup: Some(false), ..greedy(8) };
    let first = block_on(session.logits(&prompt)).unwrap();
    let answer = generate(&mut session, &prompt, &options).unwrap();
    for _ in 0..3 {
        block_on(session.logits(&[9])).unwrap();
        assert_eq!(block_on(session.logits(&prompt)).unwrap(), first);
        assert_eq!(generate(&mut session, &prompt, &options).unwrap().ids, answer.ids);
    }
}
