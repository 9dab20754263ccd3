//! Calls that wait for room in a KV cache that cannot grow.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use tritloom::session::{Answer, Calls, FinishReason, GenerateOptions, Prompt, Session, Token};

use crate::lost::{Losing, load_with};
use crate::setup::{generate, greedy, noise};

/// Serves calls. `act` gets the answers each time before they are waited for, with the tokens so far. Gives
/// the number of the call for each token, in the order in which the tokens came.
fn serve(
    session: &mut Session,
    asked: Vec<(Vec<u32>, GenerateOptions)>,
    mut act: impl FnMut(&[usize], &mut [Option<Answer>]),
) -> Vec<usize> {
    let came = RefCell::new(Vec::new());
    let calls = Calls::default();
    let mut answers: Vec<Option<Answer>> = Vec::new();
    for (n, (ids, options)) in asked.into_iter().enumerate() {
        let came = &came;
        let on_token = move |token: Token| {
            came.borrow_mut().extend(token.id.map(|_| n));
            ControlFlow::Continue(())
        };
        answers.push(Some(calls.push(Prompt::Ids(ids), options, Box::new(on_token))));
    }
    let mut serving = pin!(session.serve(&calls));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        act(&came.borrow(), &mut answers);
        if let Poll::Ready(done) = serving.as_mut().poll(&mut context) {
            done.unwrap();
            break;
        }
    }
    for answer in answers.into_iter().flatten() {
        answer.now_or_never().expect("answered").unwrap();
    }
    came.take()
}

fn first(came: &[usize], call: usize) -> usize {
    came.iter().position(|&n| n == call).unwrap()
}

fn last(came: &[usize], call: usize) -> usize {
    came.iter().rposition(|&n| n == call).unwrap()
}

/// The first of the waiting calls needs more room than there is. When its caller gives up, the next one begins,
/// which needs less.
#[test]
fn a_call_that_was_given_up_holds_up_no_other() {
    let mut session = load_with(Losing::full(), 30);
    let asked = vec![(noise(9), greedy(9)), (noise(10), greedy(15)), (noise(5), greedy(3))];
    let leave = |answers: &mut [Option<Answer>]| answers[1] = None;
    let stop = |answers: &mut [Option<Answer>]| answers[1].as_ref().unwrap().stop();
    for end in [leave, stop] {
        session.forget();
        let came = serve(&mut session, asked.clone(), |came, answers| {
            if came.len() == 3 {
                end(answers);
            }
        });
        assert!(first(&came, 2) < last(&came, 0), "{came:?}");
        assert!(!came.contains(&1));
    }
}

/// A session of 400 tokens, and calls that need more together. The first has no limit.
fn crowd() -> (Session, Vec<(Vec<u32>, GenerateOptions)>) {
    let mut session = load_with(Losing::full(), 400);
    // So that the answer does not get the whole context at once.
    generate(&mut session, &noise(101)[1..], &greedy(1)).unwrap();
    let mut asked = vec![(noise(10), GenerateOptions::default())];
    asked.extend((0..6).map(|n| (noise(12)[n..n + 6].to_vec(), greedy(93))));
    (session, asked)
}

/// An answer without a limit has used its room. It gets more when a call beside it ends, before others begin.
#[test]
fn no_answer_waits_for_ever_for_calls_that_come_later() {
    let (mut session, asked) = crowd();
    let came = serve(&mut session, asked, |_, _| ());
    let count = |call: usize| came.iter().filter(|&&n| n == call).count();
    assert_eq!((count(0), count(6)), (391, 93));
    assert!(last(&came, 0) < first(&came, 6), "{came:?}");
}

/// The first answer waits for room until another call ends. When it is stopped, it does not wait for that.
#[test]
fn an_answer_that_waits_for_room_can_be_stopped() {
    let (mut session, asked) = crowd();
    let (mut is_stopped, mut stats) = (false, None);
    let came = serve(&mut session, asked, |came, answers| {
        if is_stopped && let Some(answer) = answers[0].take() {
            stats = Some(answer.now_or_never().expect("answered").unwrap());
        }
        // The others have had many tokens since its last one.
        if !is_stopped && came.len() > 30 && !came[came.len() - 30..].contains(&0) {
            is_stopped = true;
            answers[0].as_ref().unwrap().stop();
        }
    });
    let count = |call: usize| came.iter().filter(|&&n| n == call).count();
    let stats = stats.unwrap();
    assert_eq!((stats.finish_reason, stats.completion_tokens), (FinishReason::Abort, count(0)));
    assert!((1..391).contains(&count(0)), "{}", count(0));
    assert!((1..7).all(|call| count(call) == 93));
}
