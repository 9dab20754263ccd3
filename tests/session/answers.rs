//! Many answers of many schemas are valid as Ajv sees it. The models are random.

use std::collections::HashSet;

use serde_json::{Value, json};

use tritloom::sampling::Sampling;
use tritloom::session::{FinishReason, GenerateOptions};

use crate::format::{byte_level, drawn, held_to, load, prepared, with_sentencepiece};
use crate::setup::{generate, greedy, noise};
use crate::valid::assert_valid;

/// Answers of each schema that each model draws.
const DRAWN: u32 = 4;

fn closed(properties: Value, required: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Strings and arrays are bounded, so that answers end. Only recursive ones may go on.
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
    vec![
        json!({ "type": "boolean" }),
        json!({ "type": ["boolean", "integer"], "minimum": -99 }),
        json!({ "type": "integer" }),
        json!({ "type": "integer", "minimum": -3, "maximum": 12 }),
        json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1000, "multipleOf": 7 }),
        json!({ "type": "number" }),
        json!({ "type": "number", "minimum": -1.5, "exclusiveMaximum": 0.25 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
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
        json!({ "type": "string", "format": "uri", "maxLength": 30 }),
        json!({ "type": "string", "format": "duration", "maxLength": 30 }),
        json!({ "enum": ["red", "green", 3, null, [1, "two"], { "a": true }] }),
        json!({ "type": "string", "enum": ["tab\there", "slash/", "quote\"", "back\\slash"] }),
        json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 2, "maxItems": 4 }),
        json!({ "type": "array", "prefixItems": [{ "type": "integer" }, short], "items": false }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
            "items": [{ "const": 1 }, { "const": 2 }], "additionalItems": false, "minItems": 1 }),
        json!({ "type": "array", "items": { "type": "array", "items": { "enum": [0, 1] },
            "maxItems": 2 }, "minItems": 1, "maxItems": 3 }),
        closed(json!({ "a": short, "b": { "type": "boolean" } }), json!(["a", "b"])),
        closed(
            json!({ "a": short, "b": { "type": "boolean" }, "c": { "const": 1 } }),
            json!(["b"]),
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
    ]
}

/// Schemas of which only one text is valid.
fn of_one_text() -> Vec<Value> {
    vec![
        json!({ "const": { "key \"q\"\n\\": ["é 日本 🦊", -1.5, {}, []] } }),
        json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 }),
        closed(json!({}), json!([])),
        closed(
            json!({ "ключ": { "const": 1 }, "a \"b\"": { "const": 2 }, "\n\\": { "const": 3 },
            "": { "const": 4 } }),
            json!(["ключ", "a \"b\"", "\n\\", ""]),
        ),
        json!({ "$ref": "#/$defs/a~1b%25c", "$defs": { "a/b%c": { "const": "found" } } }),
    ]
}

/// Greedy answers and drawn ones, of both kinds of tokenizer: 460 runs.
#[test]
fn answers_are_json_that_is_valid_by_its_schema() {
    let (many, one) = (schemas(), of_one_text());
    let schemas = [&many[..], &one].concat();
    let mut answers = Vec::new();
    let mut n_runs = 0;
    let mut drawn_texts = vec![HashSet::new(); schemas.len()];
    for file in [byte_level(), with_sentencepiece()] {
        let (mut session, formats) = load(&file);
        for (n, schema) in schemas.iter().enumerate() {
            let formatted = prepared(&formats, schema);
            let seeds = (0..DRAWN).map(|seed| drawn(100 * seed + n as u32));
            for sampling in [Sampling::default()].into_iter().chain(seeds) {
                n_runs += 1;
                let is_drawn = !sampling.is_greedy();
                let options = held_to(&formatted, GenerateOptions { sampling, ..greedy(400) });
                let found = generate(&mut session, &noise(5), &options).unwrap();
                let text = found.text;
                let is_whole = found.stats.finish_reason == FinishReason::Stop;
                assert_eq!(formatted.is_complete(&found.ids), is_whole, "{text} of {schema}");
                assert!(is_compact(&text), "{text} of {schema}");
                if is_drawn {
                    drawn_texts[n].insert(text.clone());
                }
                if is_whole {
                    answers.push((schema.clone(), text));
                }
            }
        }
    }
    assert!(n_runs >= 400 && answers.len() * 10 >= n_runs * 9, "{} of {n_runs}", answers.len());
    for (n, texts) in drawn_texts.iter().enumerate() {
        assert_eq!(texts.len() > 1, n < many.len(), "{texts:?} of {}", schemas[n]);
    }
    assert_valid(&answers);
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
