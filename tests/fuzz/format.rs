//! Target: absurd formats of answers, and the first tokens of answers in them.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tritloom_grammar::{Error, Follow, Format, Grammar, Spelling, Vocabulary};

use crate::run::{Input, Limits, fuzz};

/// Tokens of an answer.
const N_TOKENS: usize = 24;

/// The special token, which no text has.
const SPECIAL: u32 = 256;

/// Parts of schemas, whole and broken.
const SCHEMA: &[&str] = &[
    r#"{"type":"object","properties":{"a":"#,
    r#"{"type":"array","items":"#,
    r#"{"allOf":["#,
    r#"{"anyOf":["#,
    r#"{"oneOf":["#,
    r##"{"$ref":"#"}"##,
    r##"{"$ref":"#/properties/a"}"##,
    r##"{"$ref":"#/items"}"##,
    r##"{"$ref":"#/allOf/0","properties":{"a":{"$ref":"#"}}}"##,
    r#"{"type":"string"}"#,
    r#"{"type":"string","maxLength":100000,"minLength":9}"#,
    r#"{"type":"string","pattern":"^(a|b.{40}|aa)*$","maxLength":90}"#,
    r#"{"type":"string","pattern":"a.{60}b"}"#,
    r#"{"type":"string","format":"uri"}"#,
    r#"{"type":"number","multipleOf":0.07}"#,
    r#"{"type":"integer","multipleOf":9999}"#,
    r#"{"minimum":-0.5,"exclusiveMaximum":1e-9}"#,
    r#"{"const":{"a":[1,2.5,"é"]}}"#,
    r#"{"enum":[1,"a",null,[],{}]}"#,
    r#"{"patternProperties":{"a.{9}b":{}},"minProperties":1}"#,
    r#"{"required":["a","b"],"additionalProperties":"#,
    r#"{"minItems":900000,"maxItems":1000000}"#,
    "{}",
    "true",
    "false",
    ",",
    "]}",
    "}}",
    "}",
    "\"",
    "é",
    "1e400",
];

/// Parts of regular expressions.
const REGEX: &[&str] = &[
    "a",
    "é",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{9}",
    "{2,900}",
    "*",
    "+",
    "?",
    "|",
    "^",
    "$",
    "\\d",
    "\\w",
    "\\s",
    "[^a-c]",
    "(a|aa)",
    "(.a){500}",
    "\\p{L}",
    "\\u00e9",
    "\\b",
    "-",
    "&&",
    "/",
    "\\",
];

/// Parts of Lark grammars.
const LARK: &[&str] = &[
    "start: ",
    "a: ",
    "B: ",
    "a",
    "B",
    "\"x\"",
    "/y+/",
    "(",
    ")",
    "[",
    "]",
    "|",
    "*",
    "+",
    "?",
    "{2,900}",
    "\n",
    " ",
    "%ignore / /\n",
    "%json {}",
    "%regex {\"substring_chars\":\"abc\"}",
    "%lark { start: \"z\" }",
    "[capture]",
    "~/a/",
    " & ",
    "/(.a){90}/",
    "<|end|>",
    "<[1]>",
    "start: a\na: a a | \"x\" |\n",
];

fn parts(of: &'static [&'static str], n: usize) -> impl Strategy<Value = String> {
    vec(select(of), 0..n).prop_map(|parts| parts.concat())
}

/// Schemas that are whole, so that many have a grammar.
pub(crate) fn schema() -> impl Strategy<Value = String> {
    let leaf = select(&SCHEMA[5..25]).prop_map(String::from);
    leaf.prop_recursive(5, 24, 4, |inner| {
        let list = vec(inner.clone(), 1..4).prop_map(|all| all.join(","));
        prop_oneof![
            inner.clone().prop_map(|s| format!(r#"{{"type":"object","properties":{{"a":{s}}}}}"#)),
            inner.prop_map(|s| format!(r#"{{"type":"array","items":{s}}}"#)),
            (select(vec!["allOf", "anyOf", "oneOf"]), list)
                .prop_map(|(key, list)| format!(r#"{{"{key}":[{list}]}}"#)),
        ]
    })
}

fn inputs() -> impl Strategy<Value = Input> {
    let format = prop_oneof![
        3 => schema().prop_map(|text| format!("s{text}")),
        1 => parts(SCHEMA, 16).prop_map(|text| format!("s{text}")),
        2 => parts(REGEX, 16).prop_map(|text| format!("r{text}")),
        2 => parts(LARK, 24).prop_map(|text| format!("l{text}")),
        1 => parts(LARK, 24).prop_map(|text| format!("lstart: \"x\" {text}")),
    ];
    format.prop_map(|text| Input(text.into_bytes()))
}

pub(crate) fn vocabulary() -> Rc<Vocabulary> {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let single = bytes.iter().map(|byte| Spelling::Text(byte));
    let tokens = single.chain([Spelling::Special("<|end|>")]);
    Rc::new(
        Vocabulary::new(tokens, &[SPECIAL], |text| text.bytes().map(u32::from).collect()).unwrap(),
    )
}

/// Chooses among the tokens that may follow, by the input.
fn target(vocabulary: &Rc<Vocabulary>, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let format = match text.split_at_checked(1) {
        Some(("r", text)) => Format::Regex(text.into()),
        Some(("l", text)) => Format::Lark(text.into()),
        Some((_, text)) => Format::JsonSchema(text.into()),
        None => return,
    };
    follow(vocabulary, &format, input.len(), N_TOKENS);
}

fn assert_named(error: Error) {
    assert_eq!(error.code(), "bad-option", "{error}");
    assert!(error.to_string().len() < 4096, "{error}");
}

/// Takes up to `most` of the tokens that may follow, by `seed`, and begins with the text of these
/// tokens. Gives the text if it is a whole answer.
pub(crate) fn follow(
    vocabulary: &Rc<Vocabulary>,
    format: &Format,
    seed: usize,
    most: usize,
) -> Option<String> {
    let refused = |error| {
        assert_named(error);
        None
    };
    let grammar = match Grammar::new(vocabulary, format) {
        Ok(grammar) => grammar,
        Err(error) => return refused(error),
    };
    let mut matcher = grammar.matcher();
    let (mut answer, mut is_whole) = (Vec::new(), false);
    for n in 0..most {
        let mask = match matcher.follow() {
            Ok(Follow::OneOf(mask)) => mask,
            Ok(Follow::These(ids)) => {
                answer.extend(ids);
                continue;
            }
            Ok(Follow::Nothing) => {
                is_whole = true;
                break;
            }
            Err(error) => return refused(error),
        };
        let ids: Vec<u32> =
            (0..257).filter(|id| mask[*id as usize / 32] >> (id % 32) & 1 == 1).collect();
        let id = ids[(seed + n * 7) % ids.len()];
        if let Err(error) = matcher.take(id) {
            return refused(error);
        }
        answer.push(id);
    }
    // The same text as a beginning, and one that no answer has.
    drop(matcher);
    let has_special = answer.contains(&SPECIAL);
    let bytes: Vec<u8> = answer.into_iter().filter_map(|id| u8::try_from(id).ok()).collect();
    let begun = String::from_utf8(bytes).ok()?;
    if let Err(error) = grammar.matcher_after(&begun) {
        assert!(has_special || !matches!(error, Error::Begun { .. }), "{error}");
        assert_named(error);
    }
    if let Err(error) = grammar.matcher_after(&format!("{begun}\u{1}\"\u{1}")) {
        assert_named(error);
    }
    is_whole.then_some(begun)
}

#[test]
fn absurd_formats_are_refused_or_followed() {
    let vocabulary = vocabulary();
    // A lexer may have 100,000 states, of about a kilobyte.
    let limits = Limits { memory: 128 << 20, memory_per_byte: 1 << 10 };
    fuzz("format", &limits, inputs(), |input| target(&vocabulary, input));
}
