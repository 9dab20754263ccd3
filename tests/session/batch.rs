//! Calls that decode together: each gets the tokens that it gets alone.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use tritloom::Result;
use tritloom::sampling::{LogitBias, Logprobs, Sampling};
use tritloom::session::{
    Answer, Calls, FinishReason, GenerateOptions, KvType, Prompt, Session, Stats,
};

use crate::lookup::{cycle, cycling};
use crate::setup::{Setup, generate, greedy, noise, small};
use crate::support::Kv;

/// A call. It is made when those before it have `after` tokens together and the GPU has been waited for
/// `after_waits` times. It stops after `stops_after` tokens of its own.
#[derive(Clone)]
pub(crate) struct Asked {
    after: usize,
    after_waits: usize,
    pub(crate) ids: Vec<u32>,
    pub(crate) options: GenerateOptions,
    stops_after: usize,
}

pub(crate) fn asked(after: usize, ids: Vec<u32>, options: GenerateOptions) -> Asked {
    Asked { after, after_waits: 0, ids, options, stops_after: usize::MAX }
}

impl Asked {
    /// It is made when the GPU has been waited for so often.
    pub(crate) fn after_waits(self, after_waits: usize) -> Self {
        Self { after_waits, ..self }
    }

    pub(crate) fn stopping_after(self, stops_after: usize) -> Self {
        Self { stops_after, ..self }
    }
}

/// The tokens of a call with the log-probabilities of each.
pub(crate) type WithLogprobs = Vec<(u32, Option<Logprobs>)>;

/// The tokens of a call, and its answer to come.
type Found = (WithLogprobs, Option<Answer>);

/// The calls of a test, and what they have got.
#[derive(Default)]
struct Served {
    calls: Calls<'static>,
    waiting: RefCell<Vec<Asked>>,
    /// How often the GPU has been waited for.
    waits: Cell<usize>,
    found: RefCell<Vec<Found>>,
    /// The calls that have a token, in the order in which they got their first.
    begun: RefCell<Vec<usize>>,
}

impl Served {
    /// Makes the calls whose time has come.
    fn push(self: &Rc<Self>) {
        let total: usize = self.found.borrow().iter().map(|(ids, _)| ids.len()).sum();
        let is_due = |next: &Asked| next.after <= total && next.after_waits <= self.waits.get();
        while self.waiting.borrow().first().is_some_and(is_due) {
            let Asked { ids, options, stops_after, .. } = self.waiting.borrow_mut().remove(0);
            let (index, this) = (self.found.borrow().len(), Rc::clone(self));
            self.found.borrow_mut().push((Vec::new(), None));
            let on_token = move |token: tritloom::session::Token| {
                let mut found = this.found.borrow_mut();
                if found[index].0.is_empty() {
                    this.begun.borrow_mut().push(index);
                }
                found[index].0.extend(token.id.map(|id| (id, token.logprobs)));
                let is_enough = found[index].0.len() >= stops_after;
                drop(found);
                this.push();
                if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let answer = self.calls.push(Prompt::Ids(ids), options, Box::new(on_token));
            self.found.borrow_mut()[index].1 = Some(answer);
        }
    }
}

pub(crate) fn serve(session: &mut Session, asked: &[Asked]) -> Vec<(WithLogprobs, Result<Stats>)> {
    serve_in_order(session, asked).0
}

/// Also gives the calls in the order in which they got their first tokens.
fn serve_in_order(
    session: &mut Session,
    asked: &[Asked],
) -> (Vec<(WithLogprobs, Result<Stats>)>, Vec<usize>) {
    let served = Rc::new(Served::default());
    served.waiting.replace(asked.to_vec());
    served.push();
    let mut serving = pin!(session.serve(&served.calls));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = serving.as_mut().poll(&mut context) {
            break done.unwrap();
        }
        served.waits.set(served.waits.get() + 1);
        served.push();
    }
    let found = std::mem::take(&mut *served.found.borrow_mut());
    assert_eq!(found.len(), asked.len(), "all calls were made");
    let answer = |answer: Option<Answer>| answer.unwrap().now_or_never().unwrap();
    let found = found.into_iter().map(|(tokens, received)| (tokens, answer(received))).collect();
    (found, served.begun.take())
}

/// Asserts that each call gets the tokens beside the others that it gets alone, in steps that it shares.
pub(crate) fn check_as_alone(session: &mut Session, calls: &[Asked]) {
    let alone: Vec<Vec<u32>> =
        calls.iter().map(|call| generate(session, &call.ids, &call.options).unwrap().ids).collect();
    let together = serve(session, calls).into_iter().map(|(tokens, stats)| {
        let stats = stats.unwrap();
        assert!(stats.batch > 1, "{stats:?} {tokens:?}");
        tokens.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    });
    assert_eq!(together.collect::<Vec<_>>(), alone);
}

/// How a text is chosen: greedily, and in every other way.
fn settings() -> [Sampling; 5] {
    let all = Sampling { temperature: 1.0, ..Sampling::default() };
    let filtered = Sampling { top_k: 20, top_p: 0.9, temperature: 1.3, ..all };
    [
        Sampling::default(),
        Sampling { seed: 7, ..all },
        Sampling { seed: 8, ..filtered },
        Sampling { repeat_penalty: 1.3, frequency_penalty: 0.5, ..Sampling::default() },
        Sampling { seed: 9, presence_penalty: 1.0, ..filtered },
    ]
}

fn options(n: usize, max_tokens: usize) -> GenerateOptions {
    let sampling = settings()[n % settings().len()];
    let bias: LogitBias = [(n as u32, 3.0), (45, -1.5), (260, 0.5)].into_iter().collect();
    GenerateOptions {
        max_tokens: Some(max_tokens),
        sampling,
        // Some of both have the other.
        logit_bias: if n.is_multiple_of(3) { Rc::new(bias) } else { Rc::default() },
        logprobs: [Some(4), None, Some(0), None][n % 4],
        ..GenerateOptions::default()
    }
}

/// Prompts of different lengths, of which some are longer than a split or a chunk; calls that join
/// late and that leave early; a tenth call that waits for a free slot; greedy and drawn, with
/// penalties, biases and log-probabilities and without. And a pace of one step at a time, or of
/// several in flight.
#[test]
fn each_call_gets_the_tokens_that_it_gets_alone() {
    let setups = [
        Setup::default().on_reference(),
        Setup::default().on_cpu(),
        Setup::default().on_cpu().kv(KvType::Int8),
        Setup::default().kv(KvType::Int8).like_a_card(),
        Setup::default().like_a_fast_card(),
        Setup::default(),
    ];
    for setup in setups {
        let mut asked: Vec<Asked> = [3, 130, 1, 40, 7, 70, 2, 90, 5, 6]
            .into_iter()
            .enumerate()
            .map(|(n, len)| asked(4 * n, noise(len + n)[n..].to_vec(), options(n, 9 + 5 * n)))
            .collect();
        asked[4].stops_after = 5;
        let mut session = setup.small();
        let found = serve(&mut session, &asked);
        let batch = found.iter().map(|(_, stats)| stats.as_ref().unwrap().batch);
        assert!(batch.max().unwrap() > 4);
        let mut alone = setup.small();
        for (asked, (tokens, stats)) in asked.iter().zip(found) {
            alone.forget();
            let expected = generate(&mut alone, &asked.ids, &asked.options).unwrap();
            let len = asked.stops_after.min(expected.ids.len());
            assert_eq!(tokens, expected.logprobs[..len], "{} tokens", asked.ids.len());
            let stats = stats.unwrap();
            assert_eq!(stats.completion_tokens, len);
            let stopped = asked.stops_after < expected.ids.len();
            let reason = if stopped { FinishReason::Abort } else { expected.stats.finish_reason };
            assert_eq!(stats.finish_reason, reason);
        }
        // They leave whole sequences in the cache.
        let again = generate(&mut session, &asked[9].ids, &asked[9].options).unwrap();
        alone.forget();
        let expected = generate(&mut alone, &asked[9].ids, &asked[9].options).unwrap();
        assert_eq!(again.ids, expected.ids);
    }
}

/// A call that arrives while the long prompt of another is computed joins between two of its chunks,
/// whether the other runs alone or in a batch.
#[test]
fn no_call_waits_for_the_long_prompt_of_another() {
    let setup = Setup::default().on_reference();
    let mut session = setup.small();
    let mut alone = setup.small();
    let long = |after| asked(after, noise(900), options(1, 5));
    let joining = Asked { after_waits: 3, ..asked(0, noise(30), options(0, 5)) };
    let to_one = vec![long(0), joining];
    let to_batch = vec![
        asked(0, noise(10), options(2, 40)),
        long(1),
        asked(4, noise(20)[5..].to_vec(), options(3, 5)),
    ];
    for (asked, expected) in [(to_one, vec![1, 0]), (to_batch, vec![0, 2, 1])] {
        session.forget();
        let (found, begun) = serve_in_order(&mut session, &asked);
        assert_eq!(begun, expected);
        for (asked, (tokens, _)) in asked.iter().zip(found) {
            alone.forget();
            assert_eq!(tokens, generate(&mut alone, &asked.ids, &asked.options).unwrap().logprobs);
        }
    }
}

/// A call may join at any moment of a generation that drafts, and leave it alone again.
#[test]
fn a_call_joins_a_generation_that_drafts() {
    let setup = Setup::default().on_reference().like_a_fast_card();
    let bytes = cycling().build();
    let (mut session, mut alone) = (setup.load(&bytes).unwrap(), setup.load(&bytes).unwrap());
    let long = asked(0, cycle(), greedy(60));
    let expected = generate(&mut alone, &long.ids, &long.options).unwrap();
    assert!(expected.stats.accepted_tokens > 30, "{:?}", expected.stats);
    let joining = asked(0, noise(30), options(1, 6));
    alone.forget();
    let joined = generate(&mut alone, &joining.ids, &joining.options).unwrap();
    for after_waits in 0..16 {
        session.forget();
        let found = serve(&mut session, &[long.clone(), Asked { after_waits, ..joining.clone() }]);
        assert_eq!(found[0].0, expected.logprobs, "after {after_waits} waits");
        assert_eq!(found[1].0, joined.logprobs, "after {after_waits} waits");
    }
}

/// The call that joined is given up while steps that were submitted before are in flight.
#[test]
fn a_call_that_joined_a_generation_that_drafts_is_given_up() {
    let setup = Setup::default().on_reference().like_a_fast_card();
    let mut session = setup.load(&cycling().build()).unwrap();
    let prompt = cycle();
    let expected = generate(&mut session, &prompt, &greedy(60)).unwrap();
    assert!(expected.ids.starts_with(&prompt), "{:?}", expected.ids);
    assert!(expected.stats.accepted_tokens > 30, "{:?}", expected.stats);
    let mut context = Context::from_waker(Waker::noop());
    for (joins, leaves) in (0..16).flat_map(|joins| [1, 2, 3].map(|more| (joins, joins + more))) {
        session.forget();
        let found = RefCell::new(Vec::new());
        let calls = Calls::default();
        let on_token = |token: tritloom::session::Token| {
            found.borrow_mut().extend(token.id);
            ControlFlow::Continue(())
        };
        let _answer = calls.push(Prompt::Ids(prompt.clone()), greedy(60), Box::new(on_token));
        let mut joined = None;
        let mut serving = pin!(session.serve(&calls));
        for waits in 0.. {
            if waits == joins {
                let ignored = Box::new(|_| ControlFlow::Continue(()));
                joined = Some(calls.push(Prompt::Ids(noise(30)), greedy(6), ignored));
            } else if waits == leaves {
                joined = None;
            }
            if let Poll::Ready(done) = serving.as_mut().poll(&mut context) {
                done.unwrap();
                break;
            }
        }
        drop(joined);
        assert_eq!(*found.borrow(), expected.ids, "joins at {joins}, leaves at {leaves}");
    }
}

/// A call that arrives while a prompt is computed, and cannot join, does not change where the prompt's
/// chunks end. From 1025 tokens on, that decides how attention splits the context.
#[test]
fn a_prompt_that_was_interrupted_has_the_same_logits() {
    let setup = Setup::default().on_reference().like_a_card();
    let mut file = small();
    file.set("bitnet-b1.58.context_length", Kv::U32(2200));
    let mut session = setup.load(&file.build()).unwrap();
    let long = asked(0, noise(1300), options(0, 2));
    let empty = Asked { after_waits: 1, ..asked(0, Vec::new(), greedy(1)) };
    let found = serve(&mut session, &[long.clone(), empty]);
    assert_eq!(found[1].1.as_ref().unwrap_err().code(), "bad-option");
    session.forget();
    assert_eq!(found[0].0, generate(&mut session, &long.ids, &long.options).unwrap().logprobs);
}

/// If one call is wrong, only that call fails. The others do not notice.
#[test]
fn a_wrong_call_troubles_no_other() {
    let mut session = Setup::default().on_reference().like_a_card().context(100).small();
    let wrong = GenerateOptions {
        sampling: Sampling { top_p: 3.0, ..Sampling::default() },
        ..GenerateOptions::default()
    };
    let calls = [
        asked(0, noise(10), greedy(30)),
        asked(1, noise(101), greedy(30)),
        asked(2, noise(11), wrong),
        asked(3, Vec::new(), greedy(30)),
        asked(4, noise(12), greedy(0)),
        asked(5, noise(20)[5..].to_vec(), greedy(30)),
    ];
    let found = serve(&mut session, &calls);
    let code = |n: usize| found[n].1.as_ref().err().map(|error| error.code());
    let codes = [None, Some("context-full"), Some("bad-option"), Some("bad-option"), None, None];
    assert_eq!(std::array::from_fn(code), codes);
    for n in [0, 5] {
        session.forget();
        let alone = generate(&mut session, &calls[n].ids, &calls[n].options).unwrap();
        assert_eq!(found[n].0, alone.logprobs);
    }
    assert_eq!(found[4].1.as_ref().unwrap().completion_tokens, 0);
}

/// Calls without a limit fill the context. Each has room for all of it.
#[test]
fn calls_without_a_limit_fill_the_context() {
    let setup = Setup::default().on_reference().like_a_fast_card().context(60);
    let mut session = setup.small();
    session.suppose_steps_of(Duration::from_millis(1));
    let calls: Vec<Asked> = (0..4)
        .map(|n| asked(3 * n, noise(10 + n)[n..].to_vec(), GenerateOptions::default()))
        .collect();
    let found = serve(&mut session, &calls);
    let mut alone = setup.small();
    for (asked, (tokens, _)) in calls.iter().zip(found) {
        alone.forget();
        assert_eq!(tokens, generate(&mut alone, &asked.ids, &asked.options).unwrap().logprobs);
    }
}
