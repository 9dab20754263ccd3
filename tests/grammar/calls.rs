//! Calls of tools: which are complete, where tokens are special ones, and whose parameters are at
//! fault.

use std::rc::Rc;

use serde_json::{Value, json};

use tritloom_grammar::{Error, Follow, Format, Grammar, Spelling, Vocabulary};

use crate::{accepts, encode, vocabulary};

fn tools() -> Value {
    json!([
        { "index": 0, "name": "look", "parameters": {
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "enum": [1, 2] } },
            "required": ["city", "days"],
            "additionalProperties": false,
        } },
        { "index": 3, "name": "look_up", "parameters": {
            "type": "object", "properties": {}, "additionalProperties": false,
        } },
    ])
}

fn described(begun: bool, many: bool, tools: Value) -> Format {
    let calls = json!({
        "begin": "<call>", "end": "</call>", "open": "\n", "close": "\n", "between": "\n",
        "begun": begun, "many": many, "tools": tools,
    });
    Format::Calls(calls.to_string())
}

fn calls(begun: bool, many: bool) -> Grammar {
    Grammar::new(&vocabulary(), &described(begun, many, tools())).unwrap()
}

const LOOK: &str =
    "<call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"B\\\"é, {\", \"days\": 2}}\n</call>";
const LOOK_UP: &str = "<call>\n{\"name\": \"look_up\", \"arguments\": {}}\n</call>";

#[test]
fn calls_are_of_tools_with_arguments_that_are_valid() {
    let one = calls(false, false);
    assert!(accepts(&one, LOOK) && accepts(&one, LOOK_UP));
    for wrong in [
        "",
        "text",
        "<call>\n{\"name\": \"fly\", \"arguments\": {}}\n</call>",
        "<call>\n{\"name\": \"look\", \"arguments\": {}}\n</call>",
        "<call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"B\", \"days\": 3}}\n</call>",
        "<call>\n{\"name\": \"look_up\", \"arguments\": {}}",
        "<call>{\"name\": \"look_up\", \"arguments\": {}}</call>",
        &format!("{LOOK}\n{LOOK_UP}"),
        &format!("Well.\n{LOOK}"),
    ] {
        assert!(!accepts(&one, wrong), "{wrong}");
    }
}

#[test]
fn several_calls_may_follow_one_another_if_they_may() {
    for (begun, skipped) in [(false, 0), (true, "<call>".len())] {
        let many = calls(begun, true);
        for text in [LOOK.to_string(), format!("{LOOK}\n{LOOK_UP}\n{LOOK}")] {
            assert!(accepts(&many, &text[skipped..]), "{text}");
        }
        assert!(!accepts(&many, &format!("{LOOK}{LOOK_UP}")[skipped..]));
        // The token that ends a marker may have the brace after it.
        let joined = LOOK.replacen('\n', "", 1);
        assert_eq!(accepts(&many, &joined[skipped..]), begun);
        assert!(!accepts(&many, &format!("{LOOK}\n")[skipped..]));
    }
}

/// The vocabulary of the other tests with two more tokens.
#[test]
fn markers_are_special_tokens_if_the_vocabulary_has_them() {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let single = bytes.iter().map(|byte| Spelling::Text(byte));
    let special = ["<|end|>", "<call>", "</call>"].map(Spelling::Special);
    let bytes_of = |text: &str| text.bytes().map(u32::from).collect();
    let vocabulary = Vocabulary::new(single.chain(special), &[256], bytes_of).unwrap();
    let only = json!([tools()[1]]);
    let grammar = Grammar::new(&Rc::new(vocabulary), &described(false, true, only)).unwrap();
    let mut matcher = grammar.matcher();
    // All of a call without a choice is put in.
    let mut forced = Vec::new();
    while let Follow::These(ids) = matcher.follow().unwrap() {
        forced.extend(ids);
    }
    let inner = &LOOK_UP["<call>".len()..LOOK_UP.len() - "</call>".len()];
    let inner: Vec<u32> = inner.bytes().map(u32::from).collect();
    assert_eq!(forced, [&[257], &inner[..], &[258]].concat());
    assert!(matcher.may_end());
    // The text of a marker is no marker.
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.take(u32::from(b'<')), Err(Error::Token(u32::from(b'<'))));
}

#[test]
fn parameters_that_cannot_be_met_are_refused_with_the_tool() {
    let with = |parameters: Value| {
        let mut tools = tools();
        tools[1]["parameters"]["properties"] = json!({ "a": parameters });
        tools[1]["parameters"]["required"] = json!(["a"]);
        Grammar::new(&vocabulary(), &described(true, true, tools)).err().unwrap()
    };
    for (parameters, pointer, fact) in [
        (json!({ "not": {} }), "/properties/a/not", "not supported"),
        // Only llguidance finds these.
        (json!({ "type": "string", "pattern": "^a{3}$", "maxLength": 2 }), "", "cannot be met"),
    ] {
        let error = with(parameters);
        assert_eq!(error.code(), "bad-option");
        let Error::Tool { index: 3, .. } = &error else { panic!("{error:?}") };
        assert!(error.pointer().unwrap().contains(pointer), "{error}");
        assert!(error.to_string().starts_with("the parameters of tools[3]"), "{error}");
        assert!(error.to_string().contains(fact), "{error}");
    }
    let huge = json!([{ "index": 0, "name": "a", "parameters": {
        "type": "object", "description": "x".repeat(1 << 18) } }]);
    let error = Grammar::new(&vocabulary(), &described(true, true, huge)).err().unwrap();
    assert!(matches!(error, Error::TooComplex(_)), "{error}");
}

/// The first token of a call is a longer one where the tokenizer has it.
#[test]
fn forced_text_is_that_of_the_tokenizer() {
    let mut matcher = calls(false, false).matcher();
    let front = "<call>\n{\"name\": \"look";
    assert_eq!(matcher.follow(), Ok(Follow::These(encode(front))));
}
