//! How a generation ends, and which state it leaves behind.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tritloom::native::block_on;
use tritloom::session::{FinishReason, GenerateOptions, Session};

use crate::setup::{Goldens, Setup, generate, greedy};

fn stop_at(texts: &[&str], max_tokens: usize) -> GenerateOptions {
    let stop = texts.iter().map(|&text| text.into()).collect();
    GenerateOptions { stop, ..greedy(max_tokens) }
}

#[test]
fn a_stop_text_ends_the_text_before_it() {
    let mut session = Setup::default().on_reference().golden();
    let goldens = Goldens::golden();
    // " a fox who lived under the hill. …"
    let golden = goldens.prompt("once");
    for (stops, most, expected, reason) in [
        (&["fox who"][..], 20, " a ", FinishReason::Stop),
        // The stop text that is complete first ends the text.
        (&["zebra", "who lived", "a fox who"], 20, " ", FinishReason::Stop),
        (&[" a"], 20, "", FinishReason::Stop),
        // A stop text may begin and end in the middle of tokens.
        (&["ive"], 20, " a fox who l", FinishReason::Stop),
        // Text that begins like a stop text is held back until it differs, or until the end.
        (&["a fox who left", ""], 4, " a fox who lived", FinishReason::Length),
        (&[" lived above"], 4, " a fox who lived", FinishReason::Length),
    ] {
        let found = generate(&mut session, &golden.ids, &stop_at(stops, most)).unwrap();
        assert_eq!(found.text, expected, "{stops:?}");
        assert_eq!(found.stats.finish_reason, reason, "{stops:?}");
        assert_eq!(found.ids, golden.expected()[..found.ids.len()], "{stops:?}");
    }
}

#[test]
fn max_tokens_limits_the_tokens() {
    for setup in [Setup::default().on_reference(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let all = generate(&mut session, &[1, 2, 3], &greedy(20)).unwrap();
        assert_eq!(all.stats.finish_reason, FinishReason::Length);
        for most in [0, 1, 2, 5, 20] {
            let found = generate(&mut session, &[1, 2, 3], &greedy(most)).unwrap();
            assert_eq!(found.ids, all.ids[..most]);
            assert_eq!(found.stats.finish_reason, FinishReason::Length);
        }
    }
}

/// The last token is not written to the cache, so a full context allows one token more.
#[test]
fn a_generation_ends_with_the_context() {
    for setup in [Setup::default().on_reference(), Setup::default().like_a_fast_card()] {
        let mut session = setup.context(16).small();
        assert_eq!(session.info().context_length, 16);
        let prompt: Vec<u32> = (1..=16).collect();
        for (length, room) in [(16, 1), (15, 2), (10, 7), (1, 16)] {
            let options = GenerateOptions::default();
            let found = generate(&mut session, &prompt[..length], &options).unwrap();
            assert_eq!(found.ids.len(), room, "{length} tokens");
            assert_eq!(found.stats.finish_reason, FinishReason::Length);
        }
    }
}

/// Stops a generation at its `n`-th token. Returns the number of tokens that were computed but not
/// used.
fn abort(session: &mut Session, ids: &[u32], n: usize) -> usize {
    let mut tokens = 0;
    let options = GenerateOptions { prompt_lookup: Some(false), ..greedy(40) };
    let stats = block_on(session.generate(ids, &options, &mut |_| {
        tokens += 1;
        if tokens == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }))
    .unwrap();
    assert_eq!((tokens, stats.completion_tokens), (n, n));
    assert_eq!(stats.finish_reason, FinishReason::Abort);
    stats.unused_tokens
}

/// Drops a generation at its `n`-th token. `block_on` runs the future to its end, so only a panic
/// can drop it earlier.
fn drop_at(session: &mut Session, ids: &[u32], n: usize) -> usize {
    let mut tokens = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        block_on(session.generate(ids, &greedy(40), &mut |_| {
            tokens += 1;
            if tokens == n {
                resume_unwind(Box::new("dropped"));
            }
            ControlFlow::Continue(())
        }))
    }));
    assert!(outcome.is_err());
    0
}

/// After an abort, the next generation waits for the steps in flight. A fast card has at most
/// twenty-three, a CPU none.
#[test]
fn an_abort_leaves_few_steps_in_flight() {
    let prompt: Vec<u32> = (5..45).collect();
    for (setup, ahead) in
        [(Setup::default().on_reference(), 0), (Setup::default().like_a_fast_card(), 23)]
    {
        let mut session = setup.small();
        for n in [1, 2, 3, 5, 8, 13, 21, 34, 17, 4, 29] {
            let unused = abort(&mut session, &prompt, n);
            assert!(unused <= ahead, "{unused} at {n}");
        }
        let all = generate(&mut session, &prompt, &greedy(9)).unwrap();
        assert_eq!(all.stats.unused_tokens, 0, "nothing is submitted beyond the limit");
    }
}

/// A generation may be stopped or dropped at any token, with or without steps in flight. The next
/// generation must be right.
#[test]
fn the_generation_after_an_abort_is_right() {
    let prompt: Vec<u32> = (5..45).collect();
    let other: Vec<u32> = (5..30).chain([3, 4]).collect();
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let expected = generate(&mut session, &prompt, &greedy(12)).unwrap();
        let expected_other = generate(&mut session, &other, &greedy(12)).unwrap();
        for leave in [abort, drop_at] {
            for n in [1, 2, 5] {
                leave(&mut session, &prompt, n);
                let found = generate(&mut session, &prompt, &greedy(12)).unwrap();
                assert_eq!(found.ids, expected.ids, "left at {n}");
                assert_eq!(found.stats.reused_tokens, prompt.len() - 1);

                // The tokens generated before the stop are in the cache for the next turn.
                leave(&mut session, &prompt, n);
                let next = [&prompt[..], &expected.ids[..n], &[9]].concat();
                let found = generate(&mut session, &next, &greedy(1)).unwrap();
                let reused = found.stats.reused_tokens;
                assert!((next.len() - 2..next.len()).contains(&reused), "left at {n}: {reused}");

                leave(&mut session, &prompt, n);
                let found = generate(&mut session, &other, &greedy(12)).unwrap();
                assert_eq!(found.ids, expected_other.ids, "left at {n}");
            }
        }
    }
}

#[test]
fn the_text_after_an_abort_matches_the_golden() {
    let goldens = Goldens::golden();
    let golden = goldens.prompt("who");
    let mut session = Setup::default().on_reference().golden();
    abort(&mut session, &goldens.prompt("once").ids, 3);
    let found = generate(&mut session, &golden.ids, &greedy(40)).unwrap();
    assert_eq!(found.text, golden.greedy_text);
    drop_at(&mut session, &golden.ids, 4);
    let found = generate(&mut session, &golden.ids, &greedy(40)).unwrap();
    assert_eq!(found.text, golden.greedy_text);
    assert_eq!(found.stats.finish_reason, FinishReason::Stop);
}
