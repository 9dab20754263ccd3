//! The KV cache: what is in it is what would be computed, and it is not computed again.

use ternlight::native::block_on;
use ternlight::session::Session;

use crate::setup::{Goldens, Setup, argmax, cosine, generate, greedy, is_slow, largest_difference};

/// Tokens that mean nothing.
fn ids(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| (i * i + 7 * i) % 264).collect()
}

fn logits(session: &mut Session, ids: &[u32]) -> Vec<f32> {
    block_on(session.logits(ids)).unwrap()
}

/// The logits with nothing of them in the cache.
fn afresh(session: &mut Session, ids: &[u32]) -> Vec<f32> {
    let other = [(ids[0] + 1) % 264];
    logits(session, &other);
    logits(session, ids)
}

/// Alike but for the few int8 roundings that attention's sums in another order tip, each of which
/// moves a logit by 0.2: the best token is the same where its lead is more.
#[track_caller]
fn assert_alike(found: &[f32], expected: &[f32], n: usize) {
    let cosine = cosine(found, expected);
    assert!(cosine > 0.999, "{n} tokens: {cosine}");
    let difference = largest_difference(found, expected);
    assert!(difference < 0.6, "{n} tokens: {difference}");
    let lead = expected[argmax(expected)] - expected[argmax(found)];
    assert!(lead < 0.2, "{n} tokens: the best token has a lead of {lead} lost");
}

/// One token after another gives what all of them at once give, at every position: on a CPU exactly, as
/// long as the context is one part to attention, since products of int8 are exact however they are made.
/// A card has other kernels for one token than for many, which round in another order.
#[test]
fn decoding_from_the_cache_is_the_full_forward_pass() {
    for setup in [Setup::default(), Setup::default().kv_f32().like_a_card()] {
        let mut cached = setup.small();
        let mut whole = setup.small();
        let ids = ids(140);
        for n in 1..=ids.len() {
            let found = logits(&mut cached, &ids[..n]);
            // Each length up to a few, then those around a tile and a part of the context.
            if n <= 18 || [63, 64, 65, 66, 128, 129, 140].contains(&n) {
                let expected = afresh(&mut whole, &ids[..n]);
                if n <= 64 && !setup.like_a_card {
                    assert_eq!(found, expected, "{n} tokens");
                }
                assert_alike(&found, &expected, n);
            }
        }
    }
}

/// A prompt of several chunks, the last one of a single token or of more, gives what token by token
/// does.
#[test]
fn a_prompt_in_chunks_is_the_same_token_by_token() {
    for setup in [Setup::default(), Setup::default().like_a_card()] {
        let mut chunked = setup.small();
        if setup.like_a_card && is_slow(&chunked) {
            continue;
        }
        let mut by_token = setup.small();
        let ids = ids(if is_slow(&chunked) { 129 } else { 600 });
        for n in 1..=ids.len() {
            let expected = logits(&mut by_token, &ids[..n]);
            // The engine's chunk is 64 tokens on a CPU and 512 on a card.
            if [64, 65, 128, 129, 300, 512, 513, 600].contains(&n) {
                let found = afresh(&mut chunked, &ids[..n]);
                assert_alike(&found, &expected, n);
            }
        }
    }
}

/// A turn that goes on where the one before ended computes what is new, no more, and the answer is
/// that of a session that never saw the one before.
#[test]
fn a_second_turn_reuses_the_first() {
    let mut session = Setup::default().small();
    let first = ids(20);
    let answer = generate(&mut session, &first, &greedy(12)).unwrap();
    assert_eq!((answer.stats.reused_tokens, answer.ids.len()), (0, 12));

    let second = [&first[..], &answer.ids, &[5, 6, 7]].concat();
    let found = generate(&mut session, &second, &greedy(12)).unwrap();
    // The answer's last token was chosen, but never went through the layers.
    assert_eq!(found.stats.reused_tokens, 20 + 11);
    let expected = generate(&mut Setup::default().small(), &second, &greedy(12)).unwrap();
    assert_eq!(expected.stats.reused_tokens, 0);
    assert_eq!(found.ids, expected.ids);

    // The same prompt again: all but its last token, whose logits are wanted.
    let again = generate(&mut session, &second, &greedy(12)).unwrap();
    assert_eq!((again.stats.reused_tokens, again.ids), (second.len() - 1, expected.ids));

    // A prompt that leaves the past after a few tokens, and one that is only its beginning.
    let mut other = second.clone();
    other[10] += 1;
    let found = generate(&mut session, &other, &greedy(12)).unwrap();
    assert_eq!(found.stats.reused_tokens, 10);
    let expected = generate(&mut Setup::default().small(), &other, &greedy(12)).unwrap();
    assert_eq!(found.ids, expected.ids);
    let found = generate(&mut session, &other[..6], &greedy(1)).unwrap();
    assert_eq!(found.stats.reused_tokens, 5);
}

/// The goldens' conversation of several turns comes out the same when each turn goes on from the one
/// before as when it is computed at once.
#[test]
fn the_bundled_model_goes_on_from_the_cache() {
    let mut session = Setup::default().bundled();
    let goldens = Goldens::bundled();
    let golden = goldens.prompt(if is_slow(&session) { "who" } else { "follow_up" });
    let parts = [golden.ids.len() / 4, golden.ids.len() / 2, golden.ids.len()];
    for end in parts {
        let before = session_prefix(end, &parts);
        let found = generate(&mut session, &golden.ids[..end], &greedy(1)).unwrap();
        assert_eq!(found.stats.reused_tokens, before);
    }
    let expected = golden.expected();
    let found = generate(&mut session, &golden.ids, &greedy(8)).unwrap();
    assert_eq!(found.stats.reused_tokens, golden.ids.len() - 1);
    assert_eq!(found.ids, expected[..8]);
}

/// Tokens in the cache before the part that ends at `end`.
fn session_prefix(end: usize, parts: &[usize]) -> usize {
    parts.iter().copied().filter(|&part| part < end).max().unwrap_or(0)
}
