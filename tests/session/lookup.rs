//! Prompt lookup gives the same greedy text in fewer steps.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use tritloom::native::block_on;
use tritloom::session::{FinishReason, GenerateOptions, LmHead, Session, Stats};

use crate::setup::{Setup, generate, greedy};

/// That a draft pass of a GPU equals its steps is tested in `tests/engine/drafts.rs`.
fn setups() -> [Setup; 2] {
    [Setup::default().on_reference(), Setup::default().on_reference().like_a_fast_card()]
}

fn with_lookup(lookup: bool, options: GenerateOptions) -> GenerateOptions {
    GenerateOptions { prompt_lookup: Some(lookup), ..options }
}

/// A prompt after which the small model repeats itself. Its weights are random.
fn repeating(session: &mut Session) -> Vec<u32> {
    let start: Vec<u32> = (1..=10).collect();
    let ids = generate(session, &start, &with_lookup(false, greedy(150))).unwrap().ids;
    [start, ids].concat()
}

/// Asserts that a generation with prompt lookup equals one without. Gives its statistics.
fn check_same(session: &mut Session, prompt: &[u32], options: &GenerateOptions) -> Stats {
    let plain = generate(session, prompt, &with_lookup(false, options.clone())).unwrap();
    let found = generate(session, prompt, &with_lookup(true, options.clone())).unwrap();
    assert_eq!(found.ids, plain.ids);
    assert_eq!(found.text, plain.text);
    assert_eq!(found.stats.finish_reason, plain.stats.finish_reason);
    assert_eq!(plain.stats.draft_passes, 0);
    let stats = found.stats;
    assert!(stats.accepted_tokens <= stats.drafted_tokens);
    assert!(stats.drafted_tokens <= 7 * stats.draft_passes);
    stats
}

#[test]
fn a_repeated_text_takes_fewer_steps_and_stays_the_same() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = repeating(&mut session);
        let options = with_lookup(true, greedy(40));
        let found = generate(&mut session, &prompt, &options).unwrap();
        let stats = &found.stats;
        assert!(stats.draft_passes <= 6 && stats.accepted_tokens >= 24, "{stats:?}");
        check_same(&mut session, &prompt, &greedy(40));
    }
}

/// With penalties, each drafted token changes the logits after it. With weak penalties the text goes on
/// repeating itself. With strong ones it stops, in the middle of drafts.
#[test]
fn penalties_biases_and_logprobs_are_the_same_in_drafts() {
    let half = Setup::default().like_a_card().lm_head(LmHead::Int8);
    let whole = Setup::default().like_a_fast_card().no_subgroups();
    for setup in setups().into_iter().chain([half, whole]) {
        let mut session = setup.small();
        // On a busy machine steps are slow, and fewer tokens are drafted.
        session.suppose_steps_of(Duration::from_millis(1));
        let prompt = repeating(&mut session);
        for (repeat, presence, frequency, weak) in
            [(1.0001, 0.0, 0.0001, true), (1.0, 0.3, 0.02, false), (1.02, 0.0, 0.05, false)]
        {
            let mut options = greedy(40);
            options.sampling.repeat_penalty = repeat;
            options.sampling.presence_penalty = presence;
            options.sampling.frequency_penalty = frequency;
            options.logit_bias = Rc::new([(3, 0.01), (100, -0.5)].into_iter().collect());
            options.logprobs = weak.then_some(2);
            let stats = check_same(&mut session, &prompt, &options);
            assert!(stats.accepted_tokens >= if weak { 24 } else { 1 }, "{stats:?}");
            assert!(weak || stats.accepted_tokens < stats.drafted_tokens, "{stats:?}");
        }
    }
}

/// A generation may end in the middle of a draft. It yields no token after its end, and the next
/// generation must be right.
#[test]
fn a_generation_may_end_anywhere_in_a_draft() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = repeating(&mut session);
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(24))).unwrap();
        for most in [4, 5, 8, 11, 12, 13, 24] {
            let found = generate(&mut session, &prompt, &with_lookup(true, greedy(most))).unwrap();
            assert_eq!(found.ids, all.ids[..most], "{most} tokens");
        }
        // The next generation continues with tokens that a draft left in the cache.
        let longer = [&prompt[..], &all.ids[..7]].concat();
        let found = generate(&mut session, &longer, &with_lookup(true, greedy(10))).unwrap();
        assert_eq!(found.ids, all.ids[7..17]);
        assert!(found.stats.reused_tokens >= prompt.len());
    }
}

/// A generation may be stopped while drafts are in flight. The next generation must be right.
#[test]
fn a_generation_may_be_stopped_while_drafts_are_in_flight() {
    for setup in setups() {
        let mut session = setup.small();
        let prompt = repeating(&mut session);
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(40))).unwrap().ids;
        for n in (1..28).chain([5, 9, 2]) {
            let mut tokens = 0;
            let stats =
                block_on(session.generate(&prompt, &with_lookup(true, greedy(40)), &mut |token| {
                    // The text of an incomplete character may follow the last token, without an id.
                    tokens += usize::from(token.id.is_some());
                    if tokens == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }))
                .unwrap();
            assert_eq!((stats.finish_reason, tokens), (FinishReason::Abort, n));
            let longer = [&prompt[..], &all[..n]].concat();
            let options = with_lookup(n % 2 == 0, greedy(12));
            let found = generate(&mut session, &longer, &options).unwrap();
            assert_eq!(found.ids, all[n..n + 12], "after {n} tokens");
        }
    }
}

#[test]
fn a_full_context_ends_a_draft() {
    for setup in setups() {
        let mut session = setup.context(172).small();
        let prompt = repeating(&mut session);
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
fn sampled_tokens_are_not_drafted() {
    let mut session = Setup::default().on_reference().like_a_card().small();
    let prompt = repeating(&mut session);
    let mut options = with_lookup(true, greedy(12));
    options.sampling.temperature = 0.01;
    options.sampling.top_k = 1;
    let found = generate(&mut session, &prompt, &options).unwrap();
    assert_eq!(found.stats.draft_passes, 0);
}
