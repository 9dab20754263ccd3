//! Tokens that go through the layers while a constraint looks at the tokens before them.

use std::time::Duration;

use tritloom::Result;
use tritloom::sampling::{Mask, Sampling};
use tritloom::session::{Follow, GenerateOptions, Session};

use crate::batch::{Asked, asked, serve};
use crate::constraint::{N_VOCAB, Rule, one_of_seven, ruled};
use crate::lost::{Losing, load_with};
use crate::setup::{Setup, generate, greedy, noise};

/// A session in which steps are fast, and what counts its passes.
fn fast() -> (Session, Losing) {
    let losing = Losing::never();
    let mut session = load_with(losing.clone(), 400);
    session.suppose_steps_of(Duration::from_millis(1));
    (session, losing)
}

/// One of seven, tokens that are put in, and any token, in turn.
fn mixed(answer: &[u32]) -> Result<Follow> {
    match answer.len() % 7 {
        2 => Ok(Follow::These(vec![9, 8])),
        5 => Ok(Follow::Any),
        _ => one_of_seven(answer),
    }
}

/// Ends after nine tokens.
fn nine(answer: &[u32]) -> Result<Follow> {
    match answer.len() {
        9 => Ok(Follow::Nothing),
        n => Ok(Follow::OneOf(Mask::of(N_VOCAB, (0..250).filter(|id| *id as usize % 5 == n % 5)))),
    }
}

fn settings() -> [Sampling; 3] {
    let drawn = Sampling { temperature: 1.2, seed: 5, ..Sampling::default() };
    [Sampling::default(), drawn, Sampling { repeat_penalty: 1.3, frequency_penalty: 0.4, ..drawn }]
}

fn calls() -> Vec<Asked> {
    let rules: [Rule; 3] = [one_of_seven, mixed, nine];
    let options = |n: usize| GenerateOptions { sampling: settings()[n], ..greedy(16) };
    (0..3).map(|n| asked(0, noise(5 + n), ruled(rules[n], options(n)))).collect()
}

/// The tokens of the calls, each alone and one step after the other.
fn alone() -> Vec<Vec<u32>> {
    let mut session = Setup::exact().on_reference().small();
    let ids = |call: Asked| generate(&mut session, &call.ids, &call.options).unwrap().ids;
    calls().into_iter().map(ids).collect()
}

#[test]
fn an_answer_alone_has_the_same_tokens() {
    for (call, expected) in calls().into_iter().zip(alone()) {
        let (mut session, losing) = fast();
        assert_eq!(generate(&mut session, &call.ids, &call.options).unwrap().ids, expected);
        assert!(losing.passes_ahead() > 3, "{}", losing.passes_ahead());
        // The cache has the keys and values of these tokens.
        let more = [&call.ids[..], &expected, &[1, 2]].concat();
        let mut slow = Setup::exact().on_reference().small();
        let [found, expected] = [&mut session, &mut slow]
            .map(|session| generate(session, &more, &greedy(6)).unwrap().ids);
        assert_eq!(found, expected);
    }
}

/// They come and go at every point of the work.
#[test]
fn answers_that_join_and_leave_have_the_same_tokens() {
    let expected = alone();
    for waits in 0..14 {
        let (mut session, losing) = fast();
        let mut calls = calls();
        for (n, call) in calls.iter_mut().enumerate() {
            *call = call.clone().after_waits(n * waits);
        }
        // One has no constraint.
        calls.push(asked(0, noise(9), greedy(4)).after_waits(2 * waits + 1));
        calls[1] = calls[1].clone().stopping_after(1 + waits);
        let served = serve(&mut session, &calls);
        for (n, (tokens, stats)) in served.into_iter().take(3).enumerate() {
            stats.unwrap();
            let ids: Vec<u32> = tokens.into_iter().map(|(id, _)| id).collect();
            let len = if n == 1 { ids.len() } else { expected[n].len() };
            assert_eq!(ids, expected[n][..len], "call {n} after {waits} waits");
            assert!(len >= expected[n].len().min(1 + waits));
        }
        assert!(losing.passes_ahead() > 3, "{} after {waits} waits", losing.passes_ahead());
    }
}

/// Steps run ahead without a mask while the constraint allows what the model says.
#[test]
fn a_token_that_may_not_follow_is_taken_back() {
    // Fifty tokens in a row are chosen, and some of them have to be other ones than without masks.
    let rule: Rule = |answer| match answer.len() % 60 {
        50 => Ok(Follow::These(vec![9, 8])),
        n => {
            let may = |id: &u32| *id as usize % 31 != n % 31;
            Ok(Follow::OneOf(Mask::of(N_VOCAB, (0..250).filter(may))))
        }
    };
    for sampling in settings() {
        let options = ruled(rule, GenerateOptions { sampling, logprobs: Some(1), ..greedy(130) });
        let mut slow = Setup::exact().on_reference().small();
        let (mut session, losing) = fast();
        for prompt in [noise(7), noise(8)] {
            let expected = generate(&mut slow, &prompt, &options).unwrap();
            let found = generate(&mut session, &prompt, &options).unwrap();
            assert_eq!(found.ids, expected.ids, "{sampling:?}");
            assert_eq!(found.logprobs, expected.logprobs, "{sampling:?}");
            assert_eq!(found.stats.forced_tokens, expected.stats.forced_tokens);
            let more = [&prompt[..], &expected.ids, &[1, 2]].concat();
            let [found, expected] = [&mut session, &mut slow]
                .map(|session| generate(session, &more, &greedy(6)).unwrap().ids);
            assert_eq!(found, expected);
        }
        // With a mask, each of the 252 tokens that are chosen has a pass of its own.
        assert!((20..200).contains(&losing.passes_ahead()), "{}", losing.passes_ahead());
    }
}
