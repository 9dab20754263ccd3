//! A call of a deterministic session gives the same bits, whatever ran before it or beside it. These tests take
//! over ten seconds, because they run hundreds of steps.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use tritloom::chat::{Message, Role, TemplateChoice};
use tritloom::native::block_on;
use tritloom::sampling::{LogitBias, Logprobs, Sampling};
use tritloom::session::{Calls, GenerateOptions, Prompt, Session, Token};

use crate::setup::{Output, Setup, generate, greedy, noise, small};
use crate::support::path;

/// Tokens that a call generates.
const TOKENS: usize = 24;

/// Tokens of a chunk. With small chunks a short prompt has several.
const CHUNK: usize = 32;

fn deterministic(mut setup: Setup) -> Setup {
    setup.load.engine.deterministic = true;
    setup.chunk = Some(CHUNK);
    setup
}

/// The tokens of a call, with the log-probabilities of each.
type WithLogprobs = Vec<(u32, Option<Logprobs>)>;

fn with_logprobs(sampling: Sampling, lookup: bool) -> GenerateOptions {
    let prompt_lookup = Some(lookup);
    GenerateOptions { sampling, logprobs: Some(5), prompt_lookup, ..greedy(TOKENS) }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// The tokens of the first of several calls that run together. The others have prompts of other
/// lengths.
fn beside_seven(session: &mut Session, ids: &[u32], options: &GenerateOptions) -> WithLogprobs {
    let found = Rc::new(RefCell::new(WithLogprobs::new()));
    let calls = Calls::default();
    let all = Rc::clone(&found);
    let on_token = move |token: Token| {
        all.borrow_mut().extend(token.id.map(|id| (id, token.logprobs)));
        ControlFlow::Continue(())
    };
    let prompt = Prompt::Ids(ids.to_vec());
    let answer = calls.push(prompt, options.clone(), Box::new(on_token));
    let others: Vec<_> = (1..8)
        .map(|n| {
            let prompt = Prompt::Ids(ids[n..n + 5 * n].to_vec());
            calls.push(prompt, greedy(TOKENS - n), Box::new(|_| ControlFlow::Continue(())))
        })
        .collect();
    block_on(session.serve(&calls)).unwrap();
    let stats = block_on(answer).unwrap();
    assert_eq!(stats.batch, 8, "{stats:?}");
    drop(others);
    found.take()
}

/// The prompt begins with `start`. After it comes the answer to `start`, so that decode steps have computed its
/// keys and values once; and what comes next repeats the text, so that prompt lookup drafts. A model
/// that does not repeat its texts says the `likely` tokens alone.
fn check(setup: impl Fn() -> Setup, bytes: &[u8], start: &[u32], likely: &[u32]) {
    let load = || deterministic(setup()).load(bytes).unwrap();
    let bias: LogitBias = likely.iter().map(|&id| (id, 50.0)).collect();
    let logit_bias = Rc::new(bias);
    let with_logprobs = |sampling, lookup| GenerateOptions {
        logit_bias: Rc::clone(&logit_bias),
        ..with_logprobs(sampling, lookup)
    };
    let mut session = load();
    let answer =
        generate(&mut session, start, &with_logprobs(Sampling::default(), false)).unwrap().ids;
    let prompt = [start, &answer, start, &answer].concat();
    let drawn = Sampling { temperature: 0.8, top_k: 40, seed: 7, ..Sampling::default() };
    for sampling in [Sampling::default(), drawn] {
        let plain = with_logprobs(sampling, false);
        let expected = generate(&mut load(), &prompt, &plain).unwrap();
        let long = [&prompt[..], &expected.ids].concat();
        let logits = bits(&block_on(load().logits(&long)).unwrap());

        let mut session = load();
        session.suppose_steps_of(Duration::from_millis(1));
        // Nothing but the beginning is there, then all of it, then more than that.
        generate(&mut session, start, &with_logprobs(Sampling::default(), false)).unwrap();
        for before in ["the beginning", "the same", "more", "others"] {
            let found = generate(&mut session, &prompt, &plain).unwrap();
            assert_eq!(found.logprobs, expected.logprobs, "after {before}");
            assert_eq!(bits(&block_on(session.logits(&long)).unwrap()), logits, "after {before}");
            match before {
                "the same" => {
                    assert!(found.stats.reused_tokens > 0, "{:?}", found.stats);
                    let more = [&long[..], &noise(50)].concat();
                    generate(&mut session, &more, &plain).unwrap();
                }
                "more" => {
                    let found =
                        generate(&mut session, &prompt, &with_logprobs(sampling, true)).unwrap();
                    assert_eq!(found.logprobs, expected.logprobs, "with prompt lookup");
                    let drafts = found.stats.draft_passes > 0;
                    assert_eq!(drafts, sampling.is_greedy(), "{:?}", found.stats);
                    let found = beside_seven(&mut session, &prompt, &plain);
                    assert_eq!(found, expected.logprobs, "beside others");
                }
                _ => {}
            }
        }
        assert_eq!(beside_seven(&mut load(), &prompt, &plain), expected.logprobs, "beside others");
    }
}

#[test]
fn a_call_gives_the_same_bits_whatever_ran_before_it_or_beside_it() {
    let bytes = small().build();
    let start = noise(38);
    check(Setup::default, &bytes, &start, &[]);
    check(|| Setup::default().like_a_card().packed_dot(None), &bytes, &start, &[]);
    check(|| Setup::default().on_cpu().like_a_card(), &bytes, &start, &[]);
}

/// The same with packed matrices, whose sums are floats.
#[test]
fn a_call_of_another_family_gives_the_same_bits() {
    let bytes = std::fs::read(path("tests/data/models/qwen3-yarn-q2_0.gguf")).unwrap();
    let start: Vec<u32> = noise(38).into_iter().map(|id| id % 256).collect();
    check(|| Setup::default().like_a_card(), &bytes, &start, &[65, 66, 67]);
}

fn says(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

fn ask(session: &mut Session, messages: &[Message]) -> Output {
    let prompt = session.chat_prompt(messages, None).unwrap();
    generate(session, &prompt, &with_logprobs(Sampling::default(), false)).unwrap()
}

/// In the session that has generated the answers, in a fork after another one, in one that has restored the chat,
/// and in one that has only its messages.
#[test]
fn a_chat_goes_on_with_the_same_bits_everywhere() {
    chat_goes_on(&|| deterministic(Setup::default()));
    chat_goes_on(&|| deterministic(Setup::default().on_cpu()));
}

fn chat_goes_on(setup: &dyn Fn() -> Setup) {
    let load = || setup().golden();
    let mut session = load();
    let mut chat = vec![says(Role::User, &"Tell me a story, please. ".repeat(12))];
    let first = ask(&mut session, &chat);
    chat.push(says(Role::Assistant, &first.text));
    let mut saved = Vec::new();
    let mut write = |bytes: &[u8]| {
        saved.extend(bytes);
        Ok(())
    };
    block_on(session.save(&chat, "", &mut write)).unwrap();
    let turn = |question: &str| [&chat[..], &[says(Role::User, question)]].concat();
    let expected = ask(&mut session, &turn("Who was it about?"));
    assert!(expected.stats.reused_tokens > 0, "{:?}", expected.stats);
    ask(&mut session, &turn("Where is the boat?"));
    assert_eq!(ask(&mut session, &turn("Who was it about?")).logprobs, expected.logprobs, "a fork");
    assert_eq!(
        ask(&mut load(), &turn("Who was it about?")).logprobs,
        expected.logprobs,
        "its messages"
    );
    let mut session = load();
    block_on(session.restore(&mut &saved[..])).unwrap();
    let restored = ask(&mut session, &turn("Who was it about?"));
    assert_eq!(restored.logprobs, expected.logprobs, "restored");
    assert!(restored.stats.reused_tokens > 0, "{:?}", restored.stats);
    // Another kind of session would not compute the same.
    let mut other = setup();
    other.load.engine.deterministic = false;
    assert!(block_on(other.golden().restore(&mut &saved[..])).is_err());
}

/// The text that ends a reasoning comes after a token that may have been computed already, or not.
#[test]
fn reasoning_that_is_cut_short_goes_on_with_the_same_bits() {
    let bytes = std::fs::read(path("tests/data/thinking/thinking.gguf")).unwrap();
    let found = [1, 1000].map(|ms| {
        let mut setup = deterministic(Setup::default().like_a_card());
        setup.load.template = TemplateChoice::File;
        let mut session = setup.load(&bytes).unwrap();
        session.suppose_steps_of(Duration::from_millis(ms));
        let question = [says(Role::User, "Is it warm today?")];
        let prompt = session.chat_prompt(&question, Some(true)).unwrap();
        let max_thinking_tokens = Some(3);
        let options =
            GenerateOptions { max_thinking_tokens, ..with_logprobs(Sampling::default(), false) };
        generate(&mut session, &prompt, &options).unwrap().logprobs
    });
    assert!(found[0].iter().any(|(_, logprobs)| logprobs.is_none()), "{found:?}");
    assert_eq!(found[0], found[1]);
}
