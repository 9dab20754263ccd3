//! In a chat, an answer keeps the tokens that were generated: in the next turn, when it goes on, and
//! when a message is replaced.

use std::rc::Rc;

use tritloom::chat::{Message, Role};
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{FinishReason, GenerateOptions, Session};

use crate::setup::{Setup, generate, greedy};
use crate::support::assert_error;

fn says(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

/// The tokens of a conversation that nothing was generated in.
fn tokens(session: &Session, messages: &[Message]) -> Vec<u32> {
    session.template().unwrap().tokens(session.tokenizer(), messages).unwrap()
}

#[test]
fn a_next_turn_computes_only_what_is_new() {
    let mut session = Setup::default().on_reference().golden();
    let ask = says(Role::User, "Who are you?");
    let prompt = session.chat_prompt(std::slice::from_ref(&ask), None).unwrap();
    assert_eq!(prompt, tokens(&session, std::slice::from_ref(&ask)));
    let answer = generate(&mut session, &prompt, &greedy(5)).unwrap();

    let more = says(Role::User, "Tell me a story.");
    let messages = [ask.clone(), says(Role::Assistant, &answer.text), more.clone()];
    let next = session.chat_prompt(&messages, None).unwrap();
    let said = [prompt.clone(), answer.ids].concat();
    assert!(next.starts_with(&said), "{next:?} does not begin with {said:?}");
    let turn = tokens(&session, std::slice::from_ref(&more));
    // The new turn follows the answer's end-of-turn token. It has no begin-of-text token.
    assert_eq!(next[said.len() + 1..], turn[1..]);
    let found = generate(&mut session, &next, &greedy(1)).unwrap();
    // The answer's last token never went through the layers.
    assert!(found.stats.reused_tokens >= said.len() - 1, "{:?}", found.stats);

    // An answer that was never generated has the tokens of its text.
    let other = [ask, says(Role::Assistant, "Nobody."), more];
    let written = tokens(&session, &other);
    assert_eq!(session.chat_prompt(&other, None).unwrap(), written);
}

/// Generates an answer. Returns its tokens and its message.
fn ask(session: &mut Session, messages: &[Message]) -> (Vec<u32>, Message) {
    let prompt = session.chat_prompt(messages, None).unwrap();
    let answer = generate(session, &prompt, &greedy(5)).unwrap();
    (answer.ids, says(Role::Assistant, &answer.text))
}

/// Answers keep their tokens when the next turn is replaced and when the session continues on
/// another device.
#[test]
fn answers_keep_their_tokens_whatever_comes_next() {
    let mut session = Setup::default().on_reference().golden();
    let mut messages = vec![says(Role::User, "Who are you?")];
    let (_, answer) = ask(&mut session, &messages);
    messages.extend([answer, says(Role::User, "Tell me a story.")]);
    let next = session.chat_prompt(&messages, None).unwrap();
    let (expected, _) = ask(&mut session, &messages);

    // Ask the same question again, then another one.
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), next);
    assert_eq!(ask(&mut session, &messages).0, expected);
    let mut other = messages.clone();
    other[2] = says(Role::User, "And then?");
    let instead = session.chat_prompt(&other, None).unwrap();
    let shared = next.iter().zip(&instead).take_while(|(a, b)| a == b).count();
    assert!(shared > next.len() - tokens(&session, &messages[2..]).len());
    ask(&mut session, &other);
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), next);

    // Continue on another device.
    let memory = session.into_memory();
    let mut session = Setup::default().on_reference().golden();
    block_on(session.recall(&memory)).unwrap();
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), next);
    let restored = generate(&mut session, &next, &greedy(5)).unwrap();
    assert_eq!((restored.stats.reused_tokens, restored.ids), (0, expected));

    // The memory of another model is refused.
    assert_error(
        block_on(Setup::default().on_reference().small().recall(&memory)),
        "integrity",
        &["another"],
    );
}

/// Chats that take turns compute only what is new, and so does a fork of one. Of more chats than are
/// kept, the one used longest ago is computed again.
#[test]
fn chats_take_turns_and_the_oldest_is_given_up_first() {
    let mut session = Setup::default().on_reference().golden();
    // Long ones: a text that loses only a few tokens gives up its range.
    let system = |n: usize| says(Role::System, &format!("{n} dogs{}", " run".repeat(70)));
    let mut chats: Vec<_> = (0..9).map(|n| vec![system(n)]).collect();
    let mut turn = |chat: &mut Vec<Message>, question: &str| {
        let known = chat.len() > 1;
        chat.push(says(Role::User, question));
        let prompt = session.chat_prompt(chat, None).unwrap();
        let answer = generate(&mut session, &prompt, &greedy(5)).unwrap();
        chat.push(says(Role::Assistant, &answer.text));
        // A turn need not compute the turns before it again, except the end of the last answer.
        let turn = tokens(&session, &chat[chat.len() - 2..chat.len() - 1]).len();
        known.then(|| answer.stats.reused_tokens + turn + 1 >= prompt.len())
    };
    for question in ["Who are you?", "How small?", "Why?"] {
        for (n, chat) in chats[..4].iter_mut().enumerate() {
            let found = turn(chat, question);
            assert_eq!(found, (question != "Who are you?").then_some(true), "{question} {n}");
        }
    }
    let mut fork = chats[1].clone();
    assert_eq!(turn(&mut fork, "Where is the boat?"), Some(true));
    assert_eq!(turn(&mut chats[1], "Tell me a story."), Some(true));
    // There is room for four more, and not for a fifth.
    for chat in &mut chats[4..8] {
        turn(chat, "Who are you?");
    }
    assert_eq!(turn(&mut chats[0], "And then?"), Some(true));
    turn(&mut chats[8], "Who are you?");
    assert_eq!([3, 2].map(|n| turn(&mut chats[n], "And then?")), [Some(true), Some(false)]);
}

/// Wherever an answer ends, it goes on with the tokens that it would have had, and computes only
/// these. The next turn keeps the tokens of all parts.
#[test]
fn an_answer_goes_on_where_it_ended() {
    let mut session = Setup::default().on_reference().golden();
    let mut messages = vec![says(Role::User, "Who are you?")];
    let whole = session.chat_prompt(&messages, None).unwrap();
    let expected = generate(&mut session, &whole, &greedy(30)).unwrap();
    assert_eq!(expected.stats.finish_reason, FinishReason::Stop);
    // A text that is the beginning of the answer lets it go on from there.
    let shorter = session.begun_prompt(&messages, "I am a", None).unwrap();
    assert_eq!(shorter, [&whole[..], &expected.ids[..3]].concat());

    session.forget();
    let mut said = session.chat_prompt(&messages, None).unwrap();
    let first = generate(&mut session, &said, &greedy(4)).unwrap();
    let (mut ids, mut text) = (first.ids, first.text);
    for n in [5, 1, 30] {
        said = session.begun_prompt(&messages, &text, None).unwrap();
        assert_eq!(said, [&whole[..], &ids].concat());
        let rest = generate(&mut session, &said, &greedy(n)).unwrap();
        // The last token before it never went through the layers.
        assert_eq!(rest.stats.reused_tokens, said.len() - 1);
        ids.extend(rest.ids);
        text += &rest.text;
    }
    assert_eq!((&ids, &text), (&expected.ids, &expected.text));
    messages.extend([says(Role::Assistant, &text), says(Role::User, "And then?")]);
    let next = session.chat_prompt(&messages, None).unwrap();
    assert!(next.starts_with(&[&whole[..], &ids].concat()));

    // Other texts have the tokens of the text, as all have that were not generated here.
    for other in ["I was a", "Well"] {
        let found = session.begun_prompt(&messages[..1], other, None).unwrap();
        assert_eq!(found, begun(&session, &messages[..1], other));
        let rest = generate(&mut session, &found, &greedy(1)).unwrap();
        assert!(rest.stats.reused_tokens >= whole.len() - 1, "{:?}", rest.stats);
    }
    session.forget();
    let found = session.begun_prompt(&messages[..1], &text, None).unwrap();
    assert_eq!(found, begun(&session, &messages[..1], &text));
}

/// The tokens of an answer that is begun with a text, and was not generated.
fn begun(session: &Session, messages: &[Message], text: &str) -> Vec<u32> {
    let template = session.template().unwrap();
    template.tokens_begun(session.tokenizer(), messages, text).unwrap()
}

#[test]
fn an_answer_that_a_stop_text_has_ended_goes_on_within_a_token() {
    let mut session = Setup::default().on_reference().golden();
    let messages = [says(Role::User, "Who are you?")];
    let prompt = session.chat_prompt(&messages, None).unwrap();
    let options = GenerateOptions { stop: vec!["del".into()], ..greedy(30) };
    let answer = generate(&mut session, &prompt, &options).unwrap();
    assert_eq!(answer.text, "I am a very small mo");
    let found = session.begun_prompt(&messages, &answer.text, None).unwrap();
    let kept = [&prompt[..], &answer.ids[..answer.ids.len() - 1]].concat();
    assert!(found.starts_with(&kept), "{found:?} does not begin with {kept:?}");
    let tokenizer = session.tokenizer();
    let said = tokenizer.decode(&prompt).unwrap() + &answer.text;
    assert_eq!(tokenizer.decode(&found).unwrap(), said);
}

/// In a deterministic session the messages alone decide.
#[test]
fn an_answer_goes_on_with_the_tokens_of_its_text_where_these_decide() {
    let mut setup = Setup::default().on_reference();
    setup.load.engine.deterministic = true;
    let mut session = setup.golden();
    let messages = [says(Role::User, "東京?")];
    let (ids, answer) = ask(&mut session, &messages);
    assert!(!ids.is_empty());
    let found = session.begun_prompt(&messages, &answer.content, None).unwrap();
    assert_eq!(found, begun(&session, &messages, &answer.content));
}

/// A message that is answered again keeps its prompt. If an answer is kept and another one was
/// generated after it, the next turn has the tokens of the one that was kept.
#[test]
fn of_two_answers_the_one_that_was_kept_counts() {
    let mut session = Setup::default().on_reference().golden();
    let mut messages = vec![says(Role::User, "Who are you?")];
    let prompt = session.chat_prompt(&messages, None).unwrap();
    // Long answers, so that each gets a range of its own. The model would end them.
    let ends = session.tokenizer().special("<|eot_id|>").unwrap();
    let drawn = |seed| GenerateOptions {
        sampling: Sampling { temperature: 1.0, seed, ..Sampling::default() },
        logit_bias: Rc::new([(ends, -100.0)].into_iter().collect()),
        ..greedy(90)
    };
    let kept = generate(&mut session, &prompt, &drawn(1)).unwrap();
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), prompt);
    let other = generate(&mut session, &prompt, &drawn(2)).unwrap();
    assert_eq!(other.stats.reused_tokens, prompt.len() - 1);
    assert_ne!(other.ids, kept.ids);
    for answer in [&kept, &other] {
        messages.extend([says(Role::Assistant, &answer.text), says(Role::User, "And then?")]);
        let next = session.chat_prompt(&messages, None).unwrap();
        assert!(next.starts_with(&[&prompt[..], &answer.ids].concat()));
        let last = session.begun_prompt(&messages[..1], &answer.text, None).unwrap();
        assert_eq!(last, [&prompt[..], &answer.ids].concat());
        let found = generate(&mut session, &last, &greedy(1)).unwrap();
        assert_eq!(found.stats.reused_tokens, last.len() - 1);
        messages.truncate(1);
    }
}

/// An earlier message that is replaced costs what comes after it, and no more.
#[test]
fn an_edited_message_keeps_everything_before_it() {
    let mut session = Setup::default().on_reference().golden();
    let mut messages = Vec::new();
    for question in ["Who are you?", "How small?", "Why?"] {
        messages.push(says(Role::User, question));
        let (_, answer) = ask(&mut session, &messages);
        messages.push(answer);
    }
    let next = session.chat_prompt(&messages[..5], None).unwrap();
    messages[4] = says(Role::User, "Where?");
    let edited = session.chat_prompt(&messages[..5], None).unwrap();
    let shared = next.iter().zip(&edited).take_while(|(a, b)| a == b).count();
    let found = generate(&mut session, &edited, &greedy(5)).unwrap();
    assert_eq!(found.stats.reused_tokens, shared);
    assert!(shared + tokens(&session, &messages[4..5]).len() + 1 >= edited.len());

    // An answer that was written anew.
    messages[3] = says(Role::Assistant, "Tiny.");
    let prompt = session.chat_prompt(&messages[..5], None).unwrap();
    let before = session.chat_prompt(&messages[..3], None).unwrap();
    let found = generate(&mut session, &prompt, &greedy(5)).unwrap();
    assert!(found.stats.reused_tokens >= before.len() - 1, "{:?}", found.stats);
}

#[test]
fn what_cannot_go_on_is_refused() {
    let mut session = Setup::default().on_reference().golden();
    let ask = [says(Role::User, "Who are you?")];
    assert_error(session.begun_prompt(&ask, "", None), "bad-option", &["prefix", "empty"]);
    assert_error(session.begun_prompt(&[], "I", None), "bad-option", &["prompt", "empty"]);
    let reasons = session.begun_prompt(&ask, "I", Some(true));
    assert_error(reasons, "bad-option", &["thinking", "begun"]);
}
