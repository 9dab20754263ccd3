//! Answers that keep to a format. The models are random, so without it they would not be JSON. Answers
//! without a format stay as they are.

use std::rc::Rc;

use serde_json::{Value, json};

use tritloom::Error;
use tritloom::native::{Format, Formats, Formatted};
use tritloom::sampling::Sampling;
use tritloom::session::{FinishReason, GenerateOptions, Session};

use crate::batch::{asked, check_as_alone};
use crate::sentencepiece;
use crate::setup::{Setup, generate, greedy, noise};
use crate::support::File;
use crate::valid::validate;

/// Schemas whose answers end, because their strings and arrays are bounded.
fn schemas() -> Vec<Value> {
    let short = json!({ "type": "string", "maxLength": 4 });
    let node = json!({
        "type": "object",
        "properties": {
            "value": { "type": "integer", "minimum": 0, "maximum": 9 },
            "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] },
        },
        "required": ["value", "next"],
        "additionalProperties": false,
    });
    let tree = json!({
        "type": "array",
        "prefixItems": [{ "type": "boolean" }],
        "items": { "$ref": "#/$defs/node" },
        "minItems": 1,
        "maxItems": 2,
    });
    let closed = |properties: Value, required: Value| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    vec![
        json!({ "type": "boolean" }),
        json!({ "type": ["null", "boolean"] }),
        json!({ "type": "integer" }),
        json!({ "type": "integer", "minimum": -3, "maximum": 12 }),
        json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1000, "multipleOf": 7 }),
        json!({ "type": "number" }),
        json!({ "type": "number", "minimum": -1.5, "exclusiveMaximum": 0.25 }),
        json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1 }),
        json!({ "type": "number", "multipleOf": 0.25, "minimum": -100, "maximum": 100 }),
        short.clone(),
        json!({ "type": "string", "minLength": 2, "maxLength": 3 }),
        json!({ "type": "string", "pattern": "^[a-c]{2,4}$" }),
        json!({ "type": "string", "pattern": "^(?:\\+[0-9]{1,3} )?[0-9]{3}-[0-9]{4}$" }),
        json!({ "type": "string", "pattern": "é[x-z]", "maxLength": 4 }),
        json!({ "type": "string", "pattern": "^a|b$", "maxLength": 3 }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "string", "format": "time" }),
        json!({ "type": "string", "format": "uuid" }),
        json!({ "type": "string", "format": "ipv4" }),
        json!({ "type": "string", "format": "ipv6" }),
        json!({ "type": "string", "format": "email" }),
        json!({ "type": "string", "format": "hostname", "maxLength": 20 }),
        json!({ "enum": ["red", "green", 3, null, [1, "two"], { "a": true }] }),
        json!({ "const": { "key \"q\"\n\\": ["é 日本 🦊", -1.5, {}, []] } }),
        json!({ "type": "string", "enum": ["tab\there", "slash/", "quote\"", "back\\slash"] }),
        json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 2, "maxItems": 4 }),
        json!({ "type": "array", "items": short, "maxItems": 0 }),
        json!({ "type": "array", "prefixItems": [{ "type": "integer" }, short], "items": false }),
        json!({ "type": "array", "items": [{ "const": 1 }, { "const": 2 }], "additionalItems": false,
            "minItems": 1 }),
        json!({ "type": "array", "items": { "type": "array", "items": { "enum": [0, 1] },
            "maxItems": 2 }, "minItems": 1, "maxItems": 3 }),
        closed(json!({}), json!([])),
        closed(json!({ "a": short, "b": { "type": "boolean" } }), json!(["a", "b"])),
        closed(
            json!({ "a": short, "b": { "type": "boolean" }, "c": { "const": 1 } }),
            json!(["b"]),
        ),
        closed(
            json!({ "ключ": { "const": 1 }, "a \"b\"": { "const": 2 }, "\n\\": { "const": 3 },
            "": { "const": 4 } }),
            json!(["ключ", "a \"b\"", "\n\\", ""]),
        ),
        closed(
            json!({ "in": closed(json!({ "in": closed(json!({ "x": short }), json!(["x"])) }),
            json!(["in"])) }),
            json!(["in"]),
        ),
        json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"],
            "additionalProperties": { "type": "boolean" }, "maxProperties": 1 }),
        json!({ "type": "object", "patternProperties": { "^[a-c]$": { "enum": [1, 2] } },
            "additionalProperties": false, "minProperties": 1, "maxProperties": 2 }),
        json!({ "anyOf": [{ "type": "integer", "minimum": 5, "maximum": 7 }, short,
            { "type": "array", "items": { "type": "null" }, "maxItems": 2 }] }),
        json!({ "oneOf": [{ "$ref": "#/$defs/cat" }, { "$ref": "#/$defs/dog" }], "$defs": {
            "cat": closed(json!({ "kind": { "const": "cat" }, "lives": { "enum": [7, 9] } }),
                json!(["kind", "lives"])),
            "dog": closed(json!({ "kind": { "const": "dog" }, "name": short }), json!(["kind"])),
        } }),
        json!({ "allOf": [
            { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
            { "properties": { "a": { "minimum": 3, "maximum": 5 }, "b": short }, "required": ["b"],
              "additionalProperties": false },
        ] }),
        json!({ "$ref": "#/$defs/node", "$defs": { "node": node } }),
        json!({ "$ref": "#/$defs/tree", "$defs": { "node": tree, "tree": node } }),
        json!({ "$ref": "#/$defs/a~1b%25c", "$defs": { "a/b%c": { "const": "found" } } }),
    ]
}

/// A random model with byte-level BPE.
fn byte_level() -> File {
    crate::setup::small()
}

/// A random model with sentencepiece's tokenizer, with tokens of several characters.
fn with_sentencepiece() -> File {
    let joined = [
        "{\"", "\":", ",\"", "\"}", "tr", "ue", "true", "▁\"", "in", "12", "{\"in", "{\"in\":", "é",
    ];
    let chars = (' '..='~').map(|c| if c == ' ' { '▁' } else { c }).map(String::from);
    let words: Vec<String> = joined.map(String::from).into_iter().chain(chars).collect();
    sentencepiece::model_of(&words, |_| 1.0)
}

fn load(file: &File) -> (Session, Formats) {
    let session = Setup::exact().on_reference().load(&file.build()).unwrap();
    let formats = Formats::new(session.tokenizer()).unwrap();
    (session, formats)
}

fn held_to(formatted: &Formatted, options: GenerateOptions) -> GenerateOptions {
    GenerateOptions { constraints: Some(formatted.constraints()), ..options }
}

fn prepared(formats: &Formats, schema: &Value) -> Formatted {
    let format = Format::JsonSchema(schema.to_string());
    formats.format("schema", &format).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

fn drawn(seed: u32) -> Sampling {
    Sampling { temperature: 1.0, seed, ..Sampling::default() }
}

/// Greedy answers and drawn ones, of both kinds of tokenizer.
#[test]
fn answers_are_json_that_is_valid_by_its_schema() {
    for file in [byte_level(), with_sentencepiece()] {
        let (mut session, formats) = load(&file);
        for (n, schema) in (0..).zip(&schemas()) {
            let formatted = prepared(&formats, schema);
            // Lists in lists end with `null`.
            let null = session.tokenizer().encode_within("n").unwrap()[0];
            for sampling in [Sampling::default(), drawn(n), drawn(100 + n)] {
                let bias = if sampling.is_greedy() { 100.0 } else { 20.0 };
                let logit_bias = Rc::new([(null, bias)].into_iter().collect());
                let options = GenerateOptions { sampling, logit_bias, ..greedy(400) };
                let options = held_to(&formatted, options);
                let found = generate(&mut session, &noise(5), &options).unwrap();
                let text = found.text;
                assert_eq!(found.stats.finish_reason, FinishReason::Stop, "{text} of {schema}");
                assert!(formatted.is_complete(&found.ids), "{text} of {schema}");
                assert!(is_compact(&text), "{text} of {schema}");
                let answer = serde_json::from_str(&text);
                let answer = answer.unwrap_or_else(|error| panic!("{error}: {text} of {schema}"));
                validate(schema, schema, &answer).unwrap_or_else(|why| panic!("{why} of {schema}"));
            }
        }
    }
}

/// Whether a JSON text has no white space between its parts.
fn is_compact(text: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    text.chars().all(|c| {
        in_string ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        in_string || !c.is_whitespace()
    })
}

#[test]
fn what_is_forced_is_put_in_as_the_tokens_of_the_tokenizer() {
    let const_of = |value: Value| json!({ "const": value });
    for (file, schema, joined) in [
        (byte_level(), const_of(json!("hello world, hello")), "hello"),
        (with_sentencepiece(), const_of(json!({ "in": true, "a": ["12 \"12\" é"] })), "{\"in\":"),
    ] {
        let (mut session, formats) = load(&file);
        let options = held_to(&prepared(&formats, &schema), greedy(100));
        let found = generate(&mut session, &noise(5), &options).unwrap();
        let tokenizer = session.tokenizer();
        assert_eq!(found.ids, tokenizer.encode_within(&found.text).unwrap());
        let joined = tokenizer.encode_within(joined).unwrap();
        assert!(joined.len() == 1 && found.ids.contains(&joined[0]), "{:?}", found.ids);
    }
}

/// A token that ends an answer is chosen only where the format allows it.
#[test]
fn an_answer_ends_where_its_format_may_end() {
    let (mut session, formats) = load(&byte_level());
    let formatted = formats.format("regex", &Format::Regex("[ab]{3,5}".into())).unwrap();
    let stop = session.tokenizer().stop()[0];
    let eager = |bias: f32, n: usize| GenerateOptions {
        logit_bias: Rc::new([(stop, bias)].into_iter().collect()),
        ..held_to(&formatted, greedy(n))
    };
    for (bias, len) in [(100.0, 3), (-100.0, 5)] {
        let found = generate(&mut session, &noise(5), &eager(bias, 9)).unwrap();
        assert_eq!((found.ids.len(), found.stats.finish_reason), (len, FinishReason::Stop));
    }
    let found = generate(&mut session, &noise(5), &eager(100.0, 2)).unwrap();
    assert_eq!((found.ids.len(), found.stats.finish_reason), (2, FinishReason::Length));
    assert!(!formatted.is_complete(&found.ids));
}

#[test]
fn any_object_is_an_answer_to_json() {
    let (mut session, formats) = load(&byte_level());
    let formatted = formats.format("json", &Format::JsonObject).unwrap();
    let biases = [('"', 4.0), (':', 4.0), ('1', 4.0), (',', -100.0), ('}', 8.0)];
    let biases = biases.map(|(c, bias)| (c as u32, bias)).into_iter().collect();
    let options = GenerateOptions { logit_bias: Rc::new(biases), ..greedy(200) };
    for seed in 0..5 {
        let options = GenerateOptions { sampling: drawn(seed), ..options.clone() };
        let found = generate(&mut session, &noise(5), &held_to(&formatted, options)).unwrap();
        assert_eq!(found.stats.finish_reason, FinishReason::Stop, "{}", found.text);
        let answer: Value = serde_json::from_str(&found.text).unwrap();
        assert!(answer.is_object(), "{answer}");
    }
}

#[test]
fn other_answers_stay_as_they_are() {
    let (mut session, formats) = load(&byte_level());
    let formatted = prepared(&formats, &schemas()[0]);
    let free = GenerateOptions { logprobs: Some(2), sampling: drawn(3), ..greedy(12) };
    let before = generate(&mut session, &noise(8), &free).unwrap();
    generate(&mut session, &noise(8), &held_to(&formatted, greedy(12))).unwrap();
    let after = generate(&mut session, &noise(8), &free).unwrap();
    assert_eq!((before.told, before.text), (after.told, after.text));
}

/// Answers that run together go through one grammar, each at its own position.
#[test]
fn answers_of_one_format_run_together_as_each_does_alone() {
    let (mut session, formats) = load(&byte_level());
    let formatted = prepared(&formats, &json!({ "type": "string", "minLength": 20 }));
    // Nothing of these is forced, so that each token has a step.
    let other = prepared(&formats, &json!({ "type": "string", "pattern": "^[a-d]{30}$" }));
    let calls: Vec<_> = (0..6)
        .map(|n| {
            let options = GenerateOptions { sampling: drawn(n), ..greedy(60) };
            let options = match n % 3 {
                0 => held_to(&formatted, options),
                1 => held_to(&other, options),
                _ => options,
            };
            asked(n as usize / 3, noise(4 + n as usize), options)
        })
        .collect();
    check_as_alone(&mut session, &calls);
}

#[test]
fn formats_that_cannot_be_met_are_refused_by_the_name_of_their_option() {
    let (mut session, formats) = load(&byte_level());
    let refused = |name: &str, format: Format| formats.format(name, &format).err().unwrap();
    let schema = json!({ "properties": { "a": { "not": {} } } }).to_string();
    let wrong = [
        (refused("schema", Format::JsonSchema(schema)), "`schema`: `/properties/a/not`"),
        (refused("regex", Format::Regex("a(?=b)".into())), "`regex`: the regular expression looks"),
    ];
    for (error, fact) in wrong {
        assert!(matches!(error, Error::BadOption { .. }), "{error:?}");
        assert!(error.to_string().contains(fact), "{error}");
    }
    // This one is found only when no token may follow.
    let endless = formats.format("grammar", &Format::Lark("start: start".into())).unwrap();
    let error = generate(&mut session, &noise(5), &held_to(&endless, greedy(5))).err().unwrap();
    assert_eq!(error.code(), "bad-option");
    assert!(
        error.to_string().contains("`grammar`: the grammar is too complex: no token"),
        "{error}"
    );
    assert_eq!(generate(&mut session, &noise(5), &greedy(5)).unwrap().ids.len(), 5);
}
