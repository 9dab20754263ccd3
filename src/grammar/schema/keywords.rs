//! The keywords of JSON Schema: which there are, and which of them a grammar can say.

use serde_json::{Map, Value, json};

use super::at::At;
use crate::error::Error;

/// All types.
pub(super) const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// Keywords that the walk understands.
const KEYWORDS: [&str; 35] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "type",
    // They only say something about others, or about nothing.
    "$anchor",
    "$comment",
    "$defs",
    "$schema",
    "default",
    "definitions",
    "description",
    "title",
];

/// Keywords that no grammar can say.
const UNSUPPORTED: [&str; 17] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    // It would give references within another meaning.
    "$id",
];

/// Keywords whose meaning llguidance finds by intersecting schemas.
const PARTS: [&str; 6] = ["$ref", "allOf", "anyOf", "const", "enum", "oneOf"];

/// Keywords that only say something about others, or about nothing.
const NOTES: usize = 8;

/// Whether a keyword says something about values.
fn says_something(key: &str) -> bool {
    KEYWORDS[..KEYWORDS.len() - NOTES].contains(&key)
}

/// Whether llguidance intersects schemas to find the meaning of `schema`.
pub(super) fn is_intersected(schema: &Map<String, Value>) -> bool {
    let parts = PARTS.iter().filter(|key| schema.contains_key(**key)).count();
    let is_own = |key: &String| says_something(key) && !PARTS.contains(&&**key);
    let all_of = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
    parts + usize::from(schema.keys().any(is_own)) > 1 || all_of > 1
}

/// Refuses keywords that are not supported, and names that differ from a keyword only in case. All
/// other names are notes, as JSON Schema has it.
pub(super) fn check_keyword(
    key: &str,
    value: &Value,
    at: &At<'_>,
    is_root: bool,
) -> Result<(), Error> {
    if UNSUPPORTED.contains(&key) {
        let says_nothing = match key {
            "$id" => is_root,
            "uniqueItems" => value == &Value::Bool(false),
            "propertyNames" => {
                [json!(true), json!({}), json!({ "type": "string" })].contains(value)
            }
            "unevaluatedItems" | "unevaluatedProperties" => value == &Value::Bool(true),
            _ => false,
        };
        return match says_nothing {
            true => Ok(()),
            false => at.refuse("is not supported"),
        };
    }
    if KEYWORDS.contains(&key) {
        return Ok(());
    }
    let all = KEYWORDS.iter().chain(&UNSUPPORTED);
    match all.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(key)) {
        Some(keyword) => at.refuse(format!("is no keyword; `{keyword}` is")),
        None => Ok(()),
    }
}

pub(super) fn check_type(given: &Value, at: &At<'_>) -> Result<(), Error> {
    let names = match given {
        Value::Array(names) if !names.is_empty() => &names[..],
        name => std::slice::from_ref(name),
    };
    let is_type = |name: &str| TYPES.contains(&name) || name == "integer";
    match names.iter().all(|name| name.as_str().is_some_and(is_type)) {
        true => Ok(()),
        false => at.refuse(format!("must be of {}, integer", TYPES.join(", "))),
    }
}

/// The types that a schema's `type` names; `None` if there is none.
pub(super) fn types(given: Option<&Value>) -> Option<Vec<&'static str>> {
    let names = match given? {
        Value::Array(names) => &names[..],
        name => std::slice::from_ref(name),
    };
    let known = |name: &Value| {
        let mut all = TYPES.into_iter().chain(["integer"]);
        all.find(|kind| name.as_str() == Some(kind))
    };
    Some(names.iter().filter_map(known).collect())
}
