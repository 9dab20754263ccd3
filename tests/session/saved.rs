//! Saved chats go on elsewhere as if they had never left. Other bytes are refused.

use std::fs;

use tritloom::Result;
use tritloom::chat::{Message, Role};
use tritloom::gguf::Gguf;
use tritloom::native::block_on;
use tritloom::session::{KvType, Session};
use tritloom::source::Reader;
use tritloom::transfer::Hasher;

use crate::setup::{Output, Setup, generate, greedy};
use crate::support::{assert_error, path};

/// Bytes of the hash at the end.
const HASH: usize = 44;

fn says(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

/// Asks in a conversation, which gets longer by the question and its answer.
fn ask(session: &mut Session, messages: &mut Vec<Message>, question: &str) -> Output {
    messages.push(says(Role::User, question));
    let prompt = session.chat_prompt(messages, None).unwrap();
    let answer = generate(session, &prompt, &greedy(9)).unwrap();
    messages.push(says(Role::Assistant, &answer.text));
    answer
}

fn save(session: &mut Session, messages: &[Message]) -> Vec<u8> {
    let mut saved = Vec::new();
    let mut write = |bytes: &[u8]| {
        saved.extend(bytes);
        Ok(())
    };
    block_on(session.save(messages, "a note", &mut write)).unwrap();
    saved
}

fn restore(session: &mut Session, saved: &[u8]) -> Result<String> {
    block_on(session.restore(&mut &saved[..]))
}

/// With every type of KV cache; from one range of it into another, beside other texts.
#[test]
fn a_restored_chat_goes_on_as_if_it_had_not_been_saved() {
    let setups = [
        Setup::default().on_reference(),
        Setup::default(),
        Setup::default().like_a_card().kv(KvType::Int8),
        Setup::default().on_cpu(),
        Setup::default().on_cpu().kv(KvType::Int8),
    ];
    for setup in setups {
        let mut session = setup.golden();
        // Long enough to be worth a range of its own.
        let mut other = vec![says(Role::User, &"Tell me a story, please. ".repeat(20))];
        let mut messages = Vec::new();
        ask(&mut session, &mut messages, "Who are you?");
        ask(&mut session, &mut messages, "And how small are you?");
        let saved = save(&mut session, &messages);
        // The chat that was saved goes on too.
        let mut restored = messages.clone();
        let expected = ask(&mut session, &mut messages, "Where is the boat?");
        assert!(expected.stats.reused_tokens > 30, "{:?}", expected.stats);

        let mut session = setup.golden();
        let prompt = session.chat_prompt(&other, None).unwrap();
        let before = generate(&mut session, &prompt, &greedy(20)).unwrap();
        assert_eq!(restore(&mut session, &saved).unwrap(), "a note");
        let found = ask(&mut session, &mut restored, "Where is the boat?");
        assert_eq!((found.ids, found.text), (expected.ids, expected.text));
        assert_eq!(found.stats.reused_tokens, expected.stats.reused_tokens);
        assert_eq!(restored, messages);
        // The text beside it is as it was.
        other.extend([says(Role::Assistant, &before.text), says(Role::User, "Why?")]);
        let prompt = session.chat_prompt(&other, None).unwrap();
        let after = generate(&mut session, &prompt, &greedy(5)).unwrap();
        assert!(after.stats.reused_tokens >= before.stats.prompt_tokens);
        session.forget();
        assert_eq!(after.ids, generate(&mut session, &prompt, &greedy(5)).unwrap().ids);
    }
}

/// After a turn that failed, or in a fork, what the chat shares with the cache is saved and no more.
/// Where the cache holds nothing of it, its messages are all there is.
#[test]
fn what_is_saved_is_what_the_chat_shares_with_the_cache() {
    let setup = || Setup::default().on_reference();
    let mut session = setup().golden();
    let mut messages = Vec::new();
    ask(&mut session, &mut messages, "Who are you?");
    let whole = save(&mut session, &messages);
    let mut branch = messages.clone();
    ask(&mut session, &mut branch, "Where is the boat?");
    let shared = save(&mut session, &messages);
    // The branch has computed the end of the answer too.
    assert!((whole.len()..save(&mut session, &branch).len()).contains(&shared.len()));
    session.forget();
    let bare = save(&mut session, &messages);
    assert!(bare.len() < whole.len() / 2);
    for (saved, reuses) in [(&whole, true), (&shared, true), (&bare, false)] {
        let mut session = setup().golden();
        restore(&mut session, saved).unwrap();
        let found = ask(&mut session, &mut messages.clone(), "Where is the boat?");
        assert_eq!(found.stats.reused_tokens > 10, reuses, "{:?}", found.stats);
    }
    // A shorter context, which does not hold its tokens, keeps its messages.
    let mut session = setup().context(8).golden();
    assert_eq!(restore(&mut session, &whole).unwrap(), "a note");
}

/// The last answer of a restored chat goes on as it would have gone on before.
#[test]
fn an_answer_goes_on_in_a_restored_chat() {
    let setup = Setup::default().on_reference();
    let mut session = setup.golden();
    let mut messages = Vec::new();
    let answer = ask(&mut session, &mut messages, "Who are you?");
    let saved = save(&mut session, &messages);
    let expected = session.begun_prompt(&messages[..1], &answer.text, None).unwrap();
    let mut session = setup.golden();
    restore(&mut session, &saved).unwrap();
    let found = session.begun_prompt(&messages[..1], &answer.text, None).unwrap();
    assert_eq!(found, expected);
    let rest = generate(&mut session, &found, &greedy(1)).unwrap();
    assert_eq!(rest.stats.reused_tokens, found.len() - 1);
}

/// A chat of the golden model.
fn saved_by(setup: &Setup) -> Vec<u8> {
    let (mut session, mut messages) = (setup.golden(), Vec::new());
    ask(&mut session, &mut messages, "Who are you?");
    save(&mut session, &messages)
}

#[test]
fn a_chat_of_another_model_is_refused() {
    let on_reference = || Setup::default().on_reference();
    let saved = saved_by(&on_reference());
    // One weight is another one.
    let mut bytes = fs::read(path("tests/data/golden/golden.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&mut Reader::new(&bytes[..]))).unwrap();
    let norm = gguf.tensors.iter().find(|tensor| tensor.name == "output_norm.weight").unwrap();
    bytes[norm.offset as usize] ^= 1;
    let others = [
        (on_reference().load(&bytes).unwrap(), &saved),
        (on_reference().small(), &saved),
        (on_reference().float_activations().golden(), &saved),
        (Setup::default().kv(KvType::Int8).golden(), &saved_by(&Setup::default())),
        (Setup::default().on_cpu().golden(), &saved_by(&Setup::default())),
    ];
    for (mut other, saved) in others {
        let refused = restore(&mut other, saved).map(drop);
        assert_error(refused, "bad-option", &["`chat`", "another model"]);
    }
}

/// All damaged bytes are refused, and the session goes on. A hash that was made to fit does not
/// lead out of any buffer.
#[test]
fn damaged_and_forged_chats_are_refused() {
    let mut session = Setup::default().on_reference().golden();
    let mut messages = Vec::new();
    let alone = ask(&mut session, &mut messages, "Who are you?");
    let saved = save(&mut session, &messages);
    let refuses = |session: &mut Session, saved: &[u8], why: &str| {
        assert_error(restore(session, saved).map(drop), "bad-option", &["`chat`", why]);
    };
    for cut in [0, 7, 12, 20, HASH + 11, saved.len() / 2, saved.len() - 1] {
        refuses(&mut session, &saved[..cut], "");
    }
    refuses(&mut session, &[&saved[..], &[0]].concat(), "bytes");
    let changed = |at: usize, to: u8| {
        let mut bytes = saved.clone();
        bytes[at] = to;
        bytes
    };
    refuses(&mut session, &changed(7, 2), "another version");
    refuses(&mut session, &changed(0, b'G'), "no saved chat");
    for at in (8..saved.len()).step_by(saved.len() / 60) {
        refuses(&mut session, &changed(at, saved[at].wrapping_add(1)), "");
    }
    // Every byte of the head, with a hash that fits.
    let head = u32::from_le_bytes(saved[8..12].try_into().unwrap()) as usize;
    for at in 8..12 + head {
        for to in [0, saved[at].wrapping_add(1), 255] {
            let mut bytes = changed(at, to);
            bytes.truncate(saved.len() - HASH);
            let mut hasher = Hasher::default();
            hasher.update(&bytes);
            bytes.extend(hasher.finish().as_bytes());
            if restore(&mut session, &bytes).is_ok() {
                let next = [&messages[..], &[says(Role::User, "And?")]].concat();
                session.chat_prompt(&next, None).unwrap();
            }
        }
    }
    session.forget();
    assert_eq!(ask(&mut session, &mut Vec::new(), "Who are you?").ids, alone.ids);
}
