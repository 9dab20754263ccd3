//! In a chat, an answer keeps the tokens that were generated.

use tritloom::chat::{Message, Role};
use tritloom::session::Session;

use crate::setup::{Setup, generate, greedy};
use crate::support::assert_error;

fn says(role: Role, content: &str) -> Message {
    Message { role, content: content.into() }
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
    session.recall(&memory).unwrap();
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), next);
    let restored = generate(&mut session, &next, &greedy(5)).unwrap();
    assert_eq!((restored.stats.reused_tokens, restored.ids), (0, expected));

    // The memory of another model is refused.
    assert_error(
        Setup::default().on_reference().small().recall(&memory),
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
