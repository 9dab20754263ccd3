//! Turns of a chat: the answer before stays in the tokens it was given in.

use ternlight::chat::{self, Message, Role};

use crate::setup::{Setup, generate, greedy};

fn says(role: Role, content: &str) -> Message {
    Message { role, content: content.into() }
}

#[test]
fn a_next_turn_computes_only_what_is_new() {
    let mut session = Setup::default().bundled();
    let ask = says(Role::User, "Who are you?");
    let prompt = session.chat_prompt(std::slice::from_ref(&ask)).unwrap();
    assert_eq!(prompt, chat::prompt(session.tokenizer(), std::slice::from_ref(&ask)).unwrap());
    let answer = generate(&mut session, &prompt, &greedy(5)).unwrap();

    let more = says(Role::User, "Tell me a story.");
    let messages = [ask.clone(), says(Role::Assistant, &answer.text), more.clone()];
    let next = session.chat_prompt(&messages).unwrap();
    let said = [prompt.clone(), answer.ids].concat();
    assert!(next.starts_with(&said), "{next:?} goes on from {said:?}");
    let turn = chat::prompt(session.tokenizer(), std::slice::from_ref(&more)).unwrap();
    // The turn without its begin-of-text token, after the end of the answer's turn.
    assert_eq!(next[said.len() + 1..], turn[1..]);
    let found = generate(&mut session, &next, &greedy(1)).unwrap();
    // The answer's last token has not gone through the layers.
    assert!(found.stats.reused_tokens >= said.len() - 1, "{:?}", found.stats);

    // Of an answer that was never given, the tokens are those of its text.
    let other = [ask, says(Role::Assistant, "Nobody."), more];
    let written = chat::prompt(session.tokenizer(), &other).unwrap();
    assert_eq!(session.chat_prompt(&other).unwrap(), written);
}
