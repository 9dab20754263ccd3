//! Decisions are those of the model's log-probabilities over whole options, and the text is
//! computed once for all of them.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Instant;

use tritloom::chat::{Message, Role, TemplateChoice};
use tritloom::native::block_on;
use tritloom::sampling::Logprobs;
use tritloom::session::{
    DecideOptions, Decision, Decisions, Label, Normalize, Question, QuestionKind, Session,
};

use crate::setup::{Setup, generate, greedy};
use crate::support::{assert_error, path};

const TEXT: &str = "It rained all day. Mia and Ben built a fort.";

fn model(name: &str) -> Vec<u8> {
    fs::read(path(&format!("tests/data/{name}.gguf"))).unwrap()
}

/// A model whose values are rounded nowhere but in f32. It has a chat template.
fn chatting(setup: Setup) -> Session {
    setup.load(&model("models/qwen3-q2_0")).unwrap()
}

/// A model without a chat template, as it lacks the tokens of every built-in one.
fn plain() -> Session {
    let mut bytes = model("models/llama-tq2_0");
    let name = b"<|start_header_id|>";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + 2] = b'_';
    let session = Setup::exact().on_reference().load(&bytes).unwrap();
    assert!(session.template().is_err());
    session
}

fn boolean(question: &str) -> Question {
    Question { question: question.into(), ..Question::default() }
}

fn of(kind: QuestionKind, question: &str, labels: &[&str]) -> Question {
    let named = |label: &&str| Label { label: (*label).into(), description: None };
    Question { kind, options: labels.iter().map(named).collect(), ..boolean(question) }
}

fn choice(question: &str, labels: &[&str]) -> Question {
    of(QuestionKind::Choice, question, labels)
}

fn decide(session: &mut Session, questions: &[Question], options: &DecideOptions) -> Decisions {
    block_on(session.decide(TEXT, questions, options)).unwrap()
}

fn plainly(session: &mut Session, questions: &[Question]) -> Decisions {
    decide(session, questions, &DecideOptions::default())
}

fn probabilities(decision: &Decision) -> Vec<f64> {
    decision.options.iter().map(|option| option.probability).collect()
}

fn logprobs(decision: &Decision) -> Vec<f64> {
    decision.options.iter().map(|option| option.logprob).collect()
}

/// The shares of options, by what is compared of them.
fn softmax(worths: &[f64]) -> Vec<f64> {
    let shares: Vec<f64> = worths.iter().map(|worth| worth.exp()).collect();
    shares.iter().map(|share| share / shares.iter().sum::<f64>()).collect()
}

fn assert_close(found: &[f64], expected: &[f64], most: f64) {
    assert_eq!(found.len(), expected.len());
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off < most, "{off}: {found:?}, not {expected:?}");
}

/// The sum of the log-probabilities of `ids` from `from` on, each by the logits after those before.
fn sum(session: &mut Session, ids: &[u32], from: usize) -> f64 {
    let mut one = |n: usize| {
        let logits = block_on(session.logits(&ids[..n])).unwrap();
        f64::from(Logprobs::new(&logits, ids[n], 0).logprob)
    };
    (from..ids.len()).map(&mut one).sum()
}

/// The message that asks, for labels without descriptions.
fn message(text: &str, question: &str, labels: &[&str]) -> String {
    let listed: String = labels.iter().map(|label| format!("\n- {label}")).collect();
    format!(
        "Text:\n{text}\n\nQuestion: {question}\n\
         Answer with one of these options and nothing else:{listed}"
    )
}

/// Options that share beginnings. One is the beginning of others, and there are more than a pass has
/// tokens.
const PLACES: [&str; 11] = [
    "New York",
    "New",
    "New Jersey",
    "York",
    "Y",
    "N",
    "New York City",
    "no",
    "new",
    "Newark",
    "a house by the sea",
];

#[test]
fn a_chat_is_asked_and_whole_options_with_their_end_are_compared() {
    let mut session = chatting(Setup::exact().on_reference());
    let question = "Where?";
    let asked = Message::new(Role::User, message(TEXT, question, &PLACES));
    let prompt = session.chat_prompt(&[asked], Some(false)).unwrap();
    let end = session.tokenizer().special("<|im_end|>").unwrap();
    let expected = PLACES.map(|label| {
        let answer = session.tokenizer().encode_text(label).unwrap();
        let ids = [&prompt[..], &answer, &[end]].concat();
        sum(&mut session, &ids, prompt.len())
    });
    session.forget();
    let found = plainly(&mut session, &[choice(question, &PLACES)]);
    let decision = &found.decisions[0];
    assert_close(&logprobs(decision), &expected, 1e-4);
    assert_close(&probabilities(decision), &softmax(&expected), 1e-5);
    let best = (0..PLACES.len()).max_by(|&a, &b| expected[a].total_cmp(&expected[b])).unwrap();
    assert_eq!((decision.best, &decision.options[best].label[..]), (best, PLACES[best]));
    assert_eq!(decision.expected_score, None);
}

#[test]
fn a_model_without_a_template_is_asked_in_plain_text() {
    let mut session = plain();
    let labels = ["New York", "New", "York"];
    let before = format!("Be brief.\n\n{}\nAnswer:", message(TEXT, "Where?", &labels));
    let expected = labels.map(|label| {
        let tokenizer = session.tokenizer();
        let prompt = tokenizer.encode_text(&before).unwrap();
        let ids = tokenizer.encode_text(&format!("{before} {label}\n")).unwrap();
        assert!(ids.starts_with(&prompt));
        let bos = tokenizer.bos().filter(|_| tokenizer.add_bos());
        let ids: Vec<u32> = bos.into_iter().chain(ids).collect();
        sum(&mut session, &ids, prompt.len() + bos.iter().count())
    });
    let options = DecideOptions { context: Some("Be brief.".into()), ..DecideOptions::default() };
    let found = decide(&mut session, &[choice("Where?", &labels)], &options);
    assert_close(&logprobs(&found.decisions[0]), &expected, 1e-4);
}

#[test]
fn a_model_that_always_reasons_is_asked_for_its_answer() {
    let mut setup = Setup::default().on_reference();
    let template = "{{ messages[0].content }}<|assistant|><think>";
    setup.load.template = TemplateChoice::Given(template.into());
    let mut session = setup.load(&model("thinking/thinking")).unwrap();
    let answer = "It is warm today!";
    let found = plainly(&mut session, &[choice("Is it?", &["Is it cold? In summer no.", answer])]);
    assert_eq!(found.decisions[0].best, 1);
    // The model is all but certain of each token, and of the end after them.
    assert!(found.decisions[0].options[1].logprob > -0.1, "{found:?}");
}

/// Questions with one option of one token, several options, and more than there are lanes.
fn questions() -> Vec<Question> {
    vec![
        boolean("Is it wet?"),
        choice("Where?", &PLACES),
        of(QuestionKind::Score, "How good?", &[]),
        boolean("Is it dry?"),
        choice("Which?", &["a", "b", "c", "d", "e"]),
    ]
}

#[test]
fn questions_that_are_asked_together_get_what_they_get_alone() {
    let alone: Vec<Decision> = {
        let mut session = chatting(Setup::exact().on_reference());
        let alone = |question| plainly(&mut session, &[question]).decisions.remove(0);
        questions().into_iter().map(alone).collect()
    };
    let mut passes = Vec::new();
    for pass in [1, 3, 8] {
        let setup = Setup { pass: Some(pass), ..Setup::exact().on_reference() };
        let together = plainly(&mut chatting(setup), &questions());
        assert_eq!(together.decisions.len(), 5);
        for (alone, together) in alone.iter().zip(&together.decisions) {
            assert_eq!(logprobs(together), logprobs(alone));
            let all: f64 = probabilities(together).iter().sum();
            assert!((all - 1.0).abs() < 1e-9);
        }
        assert_eq!(together.stats.reused_tokens, 0);
        passes.push(together.stats.passes);
        assert!(together.stats.passes >= together.stats.option_tokens.div_ceil(pass));
    }
    assert!(passes[0] > 2 * passes[1] && passes[1] > 2 * passes[2], "{passes:?}");
}

#[test]
fn the_gpu_decides_as_the_reference_does() {
    let questions = [boolean("Is it wet?"), choice("Where?", &PLACES[..3])];
    let expected = plainly(&mut chatting(Setup::exact().on_reference()), &questions);
    for setup in [Setup::exact(), Setup::exact().like_a_card()] {
        let mut session = chatting(setup);
        let found = plainly(&mut session, &questions);
        for (found, expected) in found.decisions.iter().zip(&expected.decisions) {
            assert_close(&logprobs(found), &logprobs(expected), 1e-3);
            assert_close(&probabilities(found), &probabilities(expected), 1e-3);
        }
        // The text is still there.
        let again = plainly(&mut session, &questions);
        assert!(again.stats.reused_tokens > TEXT.len() / 2, "{again:?}");
        for (again, found) in again.decisions.iter().zip(&found.decisions) {
            assert_close(&logprobs(again), &logprobs(found), 1e-3);
        }
    }
}

#[test]
fn in_a_deterministic_session_the_same_text_gets_the_same_bits() {
    let mut setup = Setup::default();
    setup.load.engine.deterministic = true;
    let mut session = chatting(setup);
    let questions = [boolean("Is it wet?"), boolean("Is it dry?")];
    let first = plainly(&mut session, &questions);
    // How options share passes depends on the room in the cache. So every pass is one of single steps.
    let options = ["a rather long description of it", "another, which is as long as that one"];
    let long = plainly(&mut session, &[choice("Which is it?", &options)]).stats;
    let most = session.compute().traits().slots;
    assert!(
        long.option_tokens > most && long.passes >= long.option_tokens.div_ceil(most),
        "{long:?}"
    );
    plainly(&mut session, &questions[1..]);
    let again = plainly(&mut session, &questions);
    for (first, again) in first.decisions.iter().zip(&again.decisions) {
        assert_eq!(logprobs(first), logprobs(again));
    }
}

#[test]
fn the_text_is_computed_once() {
    let mut session = chatting(Setup::exact().on_reference());
    let tokens = |session: &mut Session, question: &str, labels: &[&str]| {
        let content = message(TEXT, question, labels);
        session.chat_prompt(&[Message::new(Role::User, content)], Some(false)).unwrap()
    };
    let [wet, dry] =
        ["Is it wet?", "Is it dry?"].map(|question| tokens(&mut session, question, &["yes", "no"]));
    let same = wet.iter().zip(&dry).take_while(|(a, b)| a == b).count();
    let both = plainly(&mut session, &[boolean("Is it wet?"), boolean("Is it dry?")]);
    assert_eq!(both.stats.prompt_tokens, wet.len() + dry.len() - same);
    assert_eq!(both.stats.reused_tokens, 0);
    // The end of an answer is not computed. The last token of a prompt is computed with each option.
    let tokens = |label| session.tokenizer().encode_text(label).unwrap().len();
    let computed = 2 * (tokens("yes") + tokens("no"));
    let questions = wet.len() + dry.len() - 2 * (same + 1);
    let passes = questions.div_ceil(8) + (computed + 4).div_ceil(8);
    assert_eq!((both.stats.option_tokens, both.stats.passes), (computed, passes));
    // Another question about the same text.
    let cold = plainly(&mut session, &[boolean("Is it cold?")]);
    assert_eq!(cold.stats.reused_tokens, same);
}

#[test]
fn other_sequences_stay_in_the_cache() {
    let mut session = chatting(Setup::exact().on_reference());
    let ids: Vec<u32> = (0..40).map(|n| n * 5).collect();
    generate(&mut session, &ids, &greedy(2)).unwrap();
    plainly(&mut session, &questions());
    let found = generate(&mut session, &ids, &greedy(2)).unwrap();
    assert_eq!(found.stats.reused_tokens, ids.len() - 1);
}

#[test]
fn log_probabilities_are_compared_as_asked() {
    let mut session = chatting(Setup::exact().on_reference());
    let labels = ["wet", "dry as a bone"];
    let questions = [choice("How is it?", &labels)];
    let found = plainly(&mut session, &questions);
    let sums = logprobs(&found.decisions[0]);
    assert_close(&probabilities(&found.decisions[0]), &softmax(&sums), 1e-9);

    let tokens = labels.map(|label| session.tokenizer().encode_text(label).unwrap().len());
    let with = |normalize, temperature| DecideOptions { normalize, temperature, context: None };
    let mut shares = |normalize, temperature| {
        let found = decide(&mut session, &questions, &with(normalize, temperature));
        assert_eq!(logprobs(&found.decisions[0]), sums);
        (probabilities(&found.decisions[0]), found.stats)
    };
    let (found, _) = shares(Normalize::None, 4.0);
    assert_close(&found, &softmax(&[sums[0] / 4.0, sums[1] / 4.0]), 1e-9);

    let (found, _) = shares(Normalize::Length, 1.0);
    // The end is a token too.
    let each = |n: usize| sums[n] / (tokens[n] + 1) as f64;
    assert_close(&found, &softmax(&[each(0), each(1)]), 1e-9);

    let (found, first) = shares(Normalize::Prior, 2.0);
    let (_, again) = shares(Normalize::Prior, 2.0);
    let without = block_on(session.decide("N/A", &questions, &with(Normalize::None, 1.0))).unwrap();
    let prior = logprobs(&without.decisions[0]);
    let worths: Vec<f64> = sums.iter().zip(prior).map(|(sum, prior)| (sum - prior) / 2.0).collect();
    assert_close(&found, &softmax(&worths), 1e-9);
    // The question without a text is asked once.
    assert!(again.prompt_tokens < first.prompt_tokens, "{again:?} {first:?}");
    assert_eq!(2 * again.option_tokens, first.option_tokens);
}

#[test]
fn a_score_has_the_mean_of_its_labels() {
    let mut session = chatting(Setup::exact().on_reference());
    let given = of(QuestionKind::Score, "How wet?", &["-1.5", "0", "20"]);
    let found = plainly(&mut session, &[of(QuestionKind::Score, "How wet?", &[]), given]);
    for (decision, values) in
        found.decisions.iter().zip([&[1.0, 2.0, 3.0, 4.0, 5.0][..], &[-1.5, 0.0, 20.0]])
    {
        let mean: f64 =
            probabilities(decision).iter().zip(values).map(|(p, value)| p * value).sum();
        assert!((decision.expected_score.unwrap() - mean).abs() < 1e-9, "{decision:?}");
    }
}

#[test]
fn descriptions_are_for_the_model() {
    let mut session = chatting(Setup::exact().on_reference());
    let mut question = choice("Which?", &["a", "b"]);
    let bare = plainly(&mut session, &[question.clone()]);
    question.options[0].description = Some("the first one".into());
    let told = plainly(&mut session, &[question]);
    let added = session.tokenizer().encode_text(": the first one").unwrap().len();
    assert_eq!(told.stats.prompt_tokens - bare.stats.prompt_tokens, added);
    assert_eq!(told.decisions[0].options[0].label, "a");
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let mut session = chatting(Setup::exact().on_reference());
    let mut refused = |text: &str, question: Question, temperature: f64, name: &str| {
        let options = DecideOptions { temperature, ..DecideOptions::default() };
        let questions = [boolean("Is it?"), question];
        assert_error(block_on(session.decide(text, &questions, &options)), "bad-option", &[name]);
    };
    let is = || boolean("Is it?");
    refused(" \n", is(), 1.0, "`text`");
    refused(TEXT, is(), 0.0, "`temperature`");
    refused(TEXT, is(), f64::INFINITY, "`temperature`");
    refused(TEXT, is(), f64::NAN, "`temperature`");
    refused(TEXT, boolean(" "), 1.0, "`questions[1].question`");
    refused(TEXT, of(QuestionKind::Boolean, "Is it?", &["a", "b"]), 1.0, "`questions[1].options`");
    refused(TEXT, choice("Which?", &[]), 1.0, "`questions[1].options`");
    refused(TEXT, choice("Which?", &["a"]), 1.0, "`questions[1].options`");
    refused(TEXT, choice("Which?", &["a", " "]), 1.0, "`questions[1].options[1]`");
    refused(TEXT, choice("Which?", &["a", "b", "a"]), 1.0, "`questions[1].options[2]`");
    for label in ["", "x", "NaN", "inf", "1 2"] {
        let score = of(QuestionKind::Score, "How?", &["1", label]);
        refused(TEXT, score, 1.0, "`questions[1].options[1]`");
    }
    let none = block_on(session.decide(TEXT, &[], &DecideOptions::default()));
    assert_error(none, "bad-option", &["`questions`"]);
    let long = "wet ".repeat(session.info().context_length);
    let full = block_on(session.decide(&long, &[is()], &DecideOptions::default()));
    assert_error(full, "context-full", &[]);
    let long = ["a", &"very ".repeat(session.info().context_length)].join(" ");
    let full = block_on(session.decide(
        TEXT,
        &[choice("Which?", &["a", &long])],
        &DecideOptions::default(),
    ));
    assert_error(full, "context-full", &[]);
}

#[test]
fn a_question_that_is_too_long_is_refused_before_its_options_are_read() {
    let mut session = chatting(Setup::exact().on_reference());
    let labels: Vec<String> = (0..2000).map(|n| format!("option {n}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let message = message(TEXT, "Which?", &labels);
    let began = Instant::now();
    session.tokenizer().encode_text(&message).unwrap();
    let once = began.elapsed();
    let began = Instant::now();
    let question = choice("Which?", &labels);
    let full = block_on(session.decide(TEXT, &[question], &DecideOptions::default()));
    let took = began.elapsed();
    assert_error(full, "context-full", &[]);
    assert!(took < 200 * once, "{took:?}, and {once:?} for the text with its options");
}

#[test]
fn a_call_that_stops_a_decision_can_come_between_its_questions() {
    let mut session = chatting(Setup::exact().on_reference());
    let mut questions: Vec<Question> = (0..20).map(|n| boolean(&format!("Is it {n}?"))).collect();
    // This one is refused, so nothing is computed.
    questions.push(boolean(&"wet ".repeat(session.info().context_length)));
    let options = DecideOptions::default();
    let mut running = pin!(session.decide(TEXT, &questions, &options));
    let mut context = Context::from_waker(Waker::noop());
    assert!((0..20).all(|_| running.as_mut().poll(&mut context).is_pending()));
    assert_error(block_on(running), "context-full", &[]);
}
