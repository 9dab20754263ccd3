//! Prompt lookup: the same greedy text in fewer passes.

use std::ops::ControlFlow;

use ternlight::engine::Engine;
use ternlight::native::block_on;
use ternlight::sampling::Sampling;
use ternlight::session::{FinishReason, GenerateOptions, Session};

use crate::chunks::engine;
use crate::setup::{Goldens, Setup, generate, greedy, is_slow};

fn setups() -> [Setup; 3] {
    [
        Setup::default(),
        Setup::default().like_a_fast_card(),
        Setup::default().like_a_card().no_subgroups(),
    ]
}

fn with_lookup(lookup: bool, options: GenerateOptions) -> GenerateOptions {
    GenerateOptions { prompt_lookup: Some(lookup), ..options }
}

/// Where the small model, whose weights are random, has begun to go round in circles.
fn circling(session: &mut Session) -> Vec<u32> {
    let start: Vec<u32> = (1..=10).collect();
    let ids = generate(session, &start, &with_lookup(false, greedy(150))).unwrap().ids;
    [start, ids].concat()
}

/// Gives how many tokens were foreseen, and how many of them wrongly.
fn check_same(session: &mut Session, prompt: &[u32], options: &GenerateOptions) -> (usize, usize) {
    let plain = generate(session, prompt, &with_lookup(false, options.clone())).unwrap();
    let found = generate(session, prompt, &with_lookup(true, options.clone())).unwrap();
    assert_eq!(found.ids, plain.ids);
    assert_eq!(found.text, plain.text);
    assert_eq!(found.stats.finish_reason, plain.stats.finish_reason);
    assert_eq!(plain.stats.draft_passes, 0);
    let stats = found.stats;
    assert!(stats.accepted_tokens <= stats.drafted_tokens);
    assert!(stats.drafted_tokens <= 7 * stats.draft_passes);
    (stats.drafted_tokens, stats.drafted_tokens - stats.accepted_tokens)
}

#[test]
fn a_repeated_text_takes_fewer_passes_and_stays_the_same() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = circling(&mut session);
        let options = with_lookup(true, greedy(40));
        let found = generate(&mut session, &prompt, &options).unwrap();
        let stats = &found.stats;
        assert!(stats.draft_passes <= 6 && stats.accepted_tokens >= 24, "{stats:?}");
        check_same(&mut session, &prompt, &greedy(40));
    }
}

/// Whatever ends a generation among tokens that were confirmed together, nothing comes after it, and
/// what follows is right.
#[test]
fn the_end_may_be_anywhere_in_a_draft() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = circling(&mut session);
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(24))).unwrap();
        for most in [4, 5, 8, 11, 12, 13, 24] {
            let found = generate(&mut session, &prompt, &with_lookup(true, greedy(most))).unwrap();
            assert_eq!(found.ids, all.ids[..most], "{most} tokens");
        }
        // Goes on from tokens that a draft left in the cache.
        let longer = [&prompt[..], &all.ids[..7]].concat();
        let found = generate(&mut session, &longer, &with_lookup(true, greedy(10))).unwrap();
        assert_eq!(found.ids, all.ids[7..17]);
        assert!(found.stats.reused_tokens >= prompt.len());
    }
}

/// Left in the middle, with passes under way that nobody waits for any more: what follows is right.
#[test]
fn a_generation_may_be_left_among_passes() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = circling(&mut session);
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(40))).unwrap().ids;
        for n in (1..28).chain([5, 9, 2]) {
            let mut pieces = 0;
            let stats =
                block_on(session.generate(&prompt, &with_lookup(true, greedy(40)), &mut |_| {
                    pieces += 1;
                    if pieces == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }))
                .unwrap();
            assert_eq!((stats.finish_reason, pieces), (FinishReason::Abort, n));
            let longer = [&prompt[..], &all[..n]].concat();
            let options = with_lookup(n % 2 == 0, greedy(12));
            let found = generate(&mut session, &longer, &options).unwrap();
            assert_eq!(found.ids, all[n..n + 12], "after {n} tokens");
        }
    }
}

/// What is chosen after each of `ids`, in passes of `few` tokens, and the logits of one token more.
fn passes(engine: &Engine, ids: &[u32], mut pos: usize, few: usize) -> (Vec<u32>, Vec<f32>) {
    let mut chosen = Vec::new();
    while chosen.len() < ids.len() {
        let rest = &ids[chosen.len()..];
        let draft = &rest[..rest.len().min(few).min(engine.few_at(pos))];
        pos += draft.len();
        chosen.extend(
            match draft {
                [_] => block_on(engine.prefill_and_sample(draft, pos - 1, true).take(engine.gpu())),
                _ => {
                    block_on(engine.decode_and_choose(draft, pos - draft.len()).take(engine.gpu()))
                }
            }
            .unwrap(),
        );
    }
    let logits = block_on(engine.prefill_and_read(&[5], pos).take(engine.gpu())).unwrap();
    (chosen, logits)
}

/// To the last bit, wherever the context is split: from 1537 tokens on coarser. Far into a context, the cache
/// is filled where it begins and ends; what is between is the same in both.
#[test]
fn a_pass_of_several_tokens_is_as_many_of_one() {
    for setup in setups() {
        let engine = engine(&setup);
        engine.set_sampling(&Sampling::default());
        let ids: Vec<u32> = (0..1600).map(|i| (i * i + 7 * i) % 264).collect();
        for (cached, n) in [(0, 24), (120, 16), (1520, 40)] {
            let filled = cached.min(engine.chunk()).min(64);
            for pos in [0, cached - filled].into_iter().filter(|_| filled > 0) {
                let (piece, end) = (&ids[pos..pos + filled], pos + filled);
                block_on(engine.prefill(piece, pos, end).take(engine.gpu())).unwrap();
            }
            let ids = &ids[cached..cached + n];
            let one_by_one = passes(&engine, ids, cached, 1);
            for few in [8, 5, 2] {
                assert_eq!(passes(&engine, ids, cached, few), one_by_one, "{few} at {cached}");
            }
        }
    }
}

#[test]
fn a_full_context_ends_a_draft() {
    for setup in setups() {
        let mut session = setup.context(172).small();
        let prompt = circling(&mut session);
        let found = generate(&mut session, &prompt, &with_lookup(true, GenerateOptions::default()))
            .unwrap();
        let plain =
            generate(&mut session, &prompt, &with_lookup(false, GenerateOptions::default()))
                .unwrap();
        assert_eq!(found.ids, plain.ids);
        assert_eq!((found.ids.len(), found.stats.finish_reason), (13, FinishReason::Length));
    }
}

#[test]
fn drawn_tokens_are_not_foreseen() {
    let mut session = Setup::default().like_a_card().small();
    let prompt = circling(&mut session);
    let mut options = with_lookup(true, greedy(12));
    options.sampling.temperature = 0.01;
    options.sampling.top_k = 1;
    let found = generate(&mut session, &prompt, &options).unwrap();
    assert_eq!(found.stats.draft_passes, 0);
}

/// Texts that repeat little, where what is foreseen is wrong more often than not, are the goldens all the same.
#[test]
fn lookup_gives_the_goldens() {
    let goldens = Goldens::bundled();
    let mut session = Setup::default().like_a_fast_card().bundled();
    let slow = is_slow(&session);
    let (few, most) = if slow { (1, 10) } else { (goldens.prompts.len(), 64) };
    let (mut foreseen, mut wrong) = (0, 0);
    for golden in goldens.prompts.iter().take(few) {
        let options = greedy(golden.expected().len().min(most));
        let found = check_same(&mut session, &golden.ids, &options);
        (foreseen, wrong) = (foreseen + found.0, wrong + found.1);
    }
    assert!(slow || wrong > 0, "{wrong} of {foreseen} tokens were foreseen wrongly");
}
