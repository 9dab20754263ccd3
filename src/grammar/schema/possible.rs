//! Schemas whose values would never end, such as an object that must hold another of its kind.

use serde_json::Value;

use super::keywords::{TYPES, types};

/// Which definitions have a value that ends.
pub(super) fn possible(definitions: &[Value]) -> Vec<bool> {
    let mut possible = vec![false; definitions.len()];
    // Each round finds more, until none does.
    loop {
        let next: Vec<bool> = definitions
            .iter()
            .zip(&possible)
            .map(|(definition, was)| *was || can_end(definition, &possible))
            .collect();
        if next == possible {
            return possible;
        }
        possible = next;
    }
}

/// Whether a plain schema has a value that ends. It may say yes where other keywords contradict one
/// another.
pub(super) fn can_end(schema: &Value, possible: &[bool]) -> bool {
    if let Value::Bool(any) = schema {
        return *any;
    }
    let all = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(definition) = schema.get("$ref").and_then(definition)
        && !possible[definition]
    {
        return false;
    }
    if all("allOf").is_some_and(|all| !all.iter().all(|part| can_end(part, possible))) {
        return false;
    }
    if all("anyOf").is_some_and(|any| !any.iter().any(|option| can_end(option, possible))) {
        return false;
    }
    let kinds = types(schema.get("type")).unwrap_or(TYPES.to_vec());
    kinds.into_iter().any(|kind| match kind {
        "array" => array_can_end(schema, possible),
        "object" => object_can_end(schema, possible),
        _ => true,
    })
}

fn array_can_end(schema: &Value, possible: &[bool]) -> bool {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let first = schema.get("prefixItems").and_then(Value::as_array);
    let first = first.map_or(&[][..], Vec::as_slice);
    first.iter().take(least).all(|item| can_end(item, possible))
        && (least <= first.len() || schema.get("items").is_none_or(|item| can_end(item, possible)))
}

fn object_can_end(schema: &Value, possible: &[bool]) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    required.into_iter().flatten().filter_map(Value::as_str).all(|key| {
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        match property {
            None if patterns.is_some_and(|patterns| !patterns.is_empty()) => true,
            None => schema.get("additionalProperties").is_none_or(|more| can_end(more, possible)),
            Some(property) => can_end(property, possible),
        }
    })
}

/// Makes every reference to a definition that has no value `false`.
pub(super) fn without_the_impossible(schema: &mut Value, possible: &[bool]) {
    if schema.get("$ref").and_then(definition).is_some_and(|n| !possible[n]) {
        *schema = Value::Bool(false);
        return;
    }
    let Value::Object(schema) = schema else { return };
    for (key, value) in schema {
        match (&**key, value) {
            ("items" | "additionalProperties", value) => without_the_impossible(value, possible),
            ("prefixItems" | "allOf" | "anyOf", Value::Array(all)) => {
                all.iter_mut().for_each(|part| without_the_impossible(part, possible));
            }
            ("properties" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(|part| without_the_impossible(part, possible));
            }
            _ => {}
        }
    }
}

/// The number of the definition to which a plain reference points.
pub(super) fn definition(reference: &Value) -> Option<usize> {
    reference.as_str()?.strip_prefix("#/$defs/")?.parse().ok()
}
