//! Grammars by themselves, without a model: which schemas are refused and where, what patterns
//! match, and how a matcher goes through an answer.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and report this way")]

mod calls;
mod closing;
mod matcher;
mod patterns;
mod schemas;
mod suite;

use std::rc::Rc;

use tritloom_grammar::{Error, Format, Grammar, Spelling, Vocabulary};

/// Tokens behind those of single bytes.
const JOINED: [&str; 8] = ["{\"", "\":", "\",\"", "\"}", "true", "ab", "é", "\\n"];

/// The token that ends an answer, a control token, and one that is never chosen.
const STOP: u32 = 264;
const CONTROL: u32 = 265;
const UNUSED: u32 = 266;

/// All single bytes and a few longer tokens.
fn vocabulary() -> Rc<Vocabulary> {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let single = bytes.iter().map(|byte| Spelling::Text(byte));
    let joined = JOINED.iter().map(|text| Spelling::Text(text.as_bytes()));
    let others = [Spelling::Special("<|end|>"), Spelling::Special("<|start|>"), Spelling::Unused];
    let tokens = single.chain(joined).chain(others);
    Rc::new(Vocabulary::new(tokens, &[STOP], encode).unwrap())
}

/// The longest tokens that fit.
fn encode(text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, ..] = rest {
        let joined = (256..).zip(JOINED).filter(|(_, joined)| rest.starts_with(joined.as_bytes()));
        let joined = joined.max_by_key(|(_, joined)| joined.len());
        let (id, len) = joined.map_or((u32::from(*first), 1), |(id, joined)| (id, joined.len()));
        ids.push(id);
        rest = &rest[len..];
    }
    ids
}

/// The bytes of a token of text.
fn bytes(id: u32) -> Vec<u8> {
    match u8::try_from(id) {
        Ok(byte) => vec![byte],
        Err(_) => JOINED[id as usize - 256].as_bytes().to_vec(),
    }
}

fn schema(text: &str) -> Result<Grammar, Error> {
    Grammar::new(&vocabulary(), &Format::JsonSchema(text.into()))
}

/// Whether an answer of this text is complete.
fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut matcher = grammar.matcher();
    text.bytes().all(|byte| matcher.take(u32::from(byte)).is_ok()) && matcher.may_end()
}
