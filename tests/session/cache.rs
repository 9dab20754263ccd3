//! The KV cache holds the values that would be computed, and nothing is computed twice.

use tritloom::native::block_on;
use tritloom::session::{GenerateOptions, KvType, Session};

use crate::setup::{Goldens, Setup, argmax, cosine, generate, greedy, largest_difference, noise};

fn logits(session: &mut Session, ids: &[u32]) -> Vec<f32> {
    block_on(session.logits(ids)).unwrap()
}

/// The logits after `ids`, computed with none of them in the cache.
fn afresh(session: &mut Session, ids: &[u32]) -> Vec<f32> {
    session.forget();
    logits(session, ids)
}

/// Another order of attention's sums tips a few int8 roundings, and each moves a logit by 0.2. The
/// best token must be the same if its lead is larger.
#[track_caller]
fn assert_alike(found: &[f32], expected: &[f32], n: usize) {
    let cosine = cosine(found, expected);
    assert!(cosine > 0.999, "{n} tokens: {cosine}");
    let difference = largest_difference(found, expected);
    assert!(difference < 0.6, "{n} tokens: {difference}");
    let lead = expected[argmax(expected)] - expected[argmax(found)];
    assert!(lead < 0.2, "{n} tokens: the best token lost a lead of {lead}");
}

/// At every position, decoding one token after another gives the same logits as all tokens at once.
/// On a CPU they are equal until attention splits the context, because products of int8 are exact.
/// A card uses different kernels for one token and for many, and these round in another order.
#[test]
fn decoding_from_the_cache_matches_the_full_forward_pass() {
    for setup in [Setup::default(), Setup::default().kv(KvType::F32).like_a_card()] {
        let mut cached = setup.small();
        let mut whole = setup.small();
        let ids = noise(140);
        for n in 1..=ids.len() {
            let found = logits(&mut cached, &ids[..n]);
            // Short lengths, then lengths of about a tile and a split of the context.
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

/// A prompt in several chunks gives the same logits as one token after another. The last chunk has
/// one token or more.
#[test]
fn a_prompt_in_chunks_matches_one_token_at_a_time() {
    for setup in [Setup::default(), Setup::default().like_a_card()] {
        let mut chunked = setup.small();
        let mut by_token = setup.small();
        let ids = noise(600);
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

/// A turn that continues the previous one computes only the new tokens. Its answer equals that of a
/// session that never saw the previous turn.
#[test]
fn a_second_turn_reuses_the_first() {
    let mut session = Setup::default().on_reference().small();
    let first = noise(20);
    let answer = generate(&mut session, &first, &greedy(12)).unwrap();
    assert_eq!((answer.stats.reused_tokens, answer.ids.len()), (0, 12));

    let second = [&first[..], &answer.ids, &[5, 6, 7]].concat();
    let found = generate(&mut session, &second, &greedy(12)).unwrap();
    // The answer's last token never went through the layers.
    assert_eq!(found.stats.reused_tokens, 20 + 11);
    let expected =
        generate(&mut Setup::default().on_reference().small(), &second, &greedy(12)).unwrap();
    assert_eq!(expected.stats.reused_tokens, 0);
    assert_eq!(found.ids, expected.ids);

    // The same prompt again reuses all tokens but the last, whose logits are needed.
    let again = generate(&mut session, &second, &greedy(12)).unwrap();
    assert_eq!((again.stats.reused_tokens, again.ids), (second.len() - 1, expected.ids));

    // A prompt that differs after a few tokens, then a beginning of that prompt.
    let mut other = second.clone();
    other[10] += 1;
    let found = generate(&mut session, &other, &greedy(12)).unwrap();
    assert_eq!(found.stats.reused_tokens, 10);
    let expected =
        generate(&mut Setup::default().on_reference().small(), &other, &greedy(12)).unwrap();
    assert_eq!(found.ids, expected.ids);
    let found = generate(&mut session, &other[..6], &greedy(1)).unwrap();
    assert_eq!(found.stats.reused_tokens, 5);
}

/// Texts that take turns keep their keys and values, although together they exceed the context. The
/// KV cache grows for them, and they move in it. Their tokens are those that each gets alone.
#[test]
fn sequences_that_take_turns_are_computed_once() {
    // A GPU is slower, and has moved all of them after two turns.
    for (setup, turns) in
        [(Setup::default().on_reference(), 3), (Setup::default().like_a_card(), 2)]
    {
        let setup = setup.context(120);
        let mut session = setup.small();
        let mut texts: Vec<Vec<u32>> = (0..4).map(|n| noise(60 + n)[n..].to_vec()).collect();
        let mut alone: Vec<Session> = texts.iter().map(|_| setup.small()).collect();
        for turn in 0..turns {
            for (text, alone) in texts.iter_mut().zip(&mut alone) {
                let found = generate(&mut session, text, &greedy(10)).unwrap();
                let expected = generate(alone, text, &greedy(10)).unwrap();
                assert_eq!(found.ids, expected.ids);
                let reused = found.stats.reused_tokens;
                assert_eq!(reused, expected.stats.reused_tokens);
                assert_eq!(reused > 50, turn > 0, "{reused}");
                text.extend(found.ids);
                text.extend([3, 4, 5]);
            }
        }
    }
}

/// A golden prompt may arrive in several requests that continue each other. Its answer is still the
/// golden one.
#[test]
fn a_golden_prompt_may_arrive_in_several_requests() {
    let mut session = Setup::default().on_reference().golden();
    for golden in &Goldens::golden().prompts {
        let n = golden.ids.len();
        session.forget();
        let mut before = 0;
        for end in [n / 4, n / 2, n].into_iter().filter(|&end| end > 0) {
            let found = generate(&mut session, &golden.ids[..end], &greedy(1)).unwrap();
            assert_eq!(found.stats.reused_tokens, before, "{}", golden.name);
            before = end;
        }
        let most = golden.greedy.len();
        let found = generate(&mut session, &golden.ids, &greedy(most)).unwrap();
        assert_eq!(found.stats.reused_tokens, n - 1, "{}", golden.name);
        assert_eq!(found.ids, golden.expected(), "{}", golden.name);
    }
}

/// A session learns the card's speed from the first prompt and takes larger chunks for the next.
/// The results must not change.
#[test]
fn larger_chunks_after_the_first_prompt_change_no_result() {
    let prompt = noise(700);
    let mut session = Setup::default().like_a_card().small();
    let options = GenerateOptions { prompt_lookup: Some(false), ..greedy(8) };
    let first = logits(&mut session, &prompt);
    let answer = generate(&mut session, &prompt, &options).unwrap();
    for _ in 0..3 {
        session.forget();
        assert_eq!(logits(&mut session, &prompt), first);
        assert_eq!(generate(&mut session, &prompt, &options).unwrap().ids, answer.ids);
    }
}
