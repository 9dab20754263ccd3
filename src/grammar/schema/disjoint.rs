//! Whether two schemas have no value in common. Then `oneOf` says the same as `anyOf`.

use serde_json::Value;

use super::references::target;
use super::walk::{TYPES, types};

/// How deep to look.
const DEPTH: usize = 6;

/// Whether it is sure that no value fits both.
pub(super) fn are_disjoint(root: &Value, a: &Value, b: &Value) -> bool {
    disjoint(root, a, b, DEPTH)
}

fn disjoint(root: &Value, a: &Value, b: &Value, depth: usize) -> bool {
    if a == &Value::Bool(false) || b == &Value::Bool(false) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    // The parts of a schema hold together, so it is enough if one of them excludes the other.
    let parts = |schema: &Value| -> Vec<Value> {
        let referred = schema.get("$ref").and_then(Value::as_str);
        let referred = referred.and_then(|to| target(root, to).ok()??.1.clone().into());
        let all = schema.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default();
        referred.into_iter().chain(all).collect()
    };
    let options = |schema: &Value| {
        let of = |key: &str| schema.get(key).and_then(Value::as_array).cloned();
        of("anyOf").or_else(|| of("oneOf"))
    };
    parts(a).iter().any(|part| disjoint(root, part, b, depth - 1))
        || parts(b).iter().any(|part| disjoint(root, a, part, depth - 1))
        || options(a).is_some_and(|all| all.iter().all(|a| disjoint(root, a, b, depth - 1)))
        || options(b).is_some_and(|all| all.iter().all(|b| disjoint(root, a, b, depth - 1)))
        || differ(root, a, b, depth)
}

/// Whether the two differ in themselves: in their types, their values or a property.
fn differ(root: &Value, a: &Value, b: &Value, depth: usize) -> bool {
    if let (Some(a), Some(b)) = (values(a), values(b)) {
        return !a.iter().any(|a| b.iter().any(|b| are_equal(a, b)));
    }
    let (kinds_a, kinds_b) = (kinds(a), kinds(b));
    if !kinds_a.iter().any(|kind| kinds_b.contains(kind)) {
        return true;
    }
    if kinds_a != ["object"] || kinds_b != ["object"] {
        return false;
    }
    let property = |schema: &Value, key: &str| schema.get("properties")?.get(key).cloned();
    let required = |schema: &Value| schema.get("required").and_then(Value::as_array).cloned();
    let keys = [required(a), required(b)].into_iter().flatten().flatten();
    keys.filter_map(|key| key.as_str().map(String::from)).any(|key| {
        match (property(a, &key), property(b, &key)) {
            (Some(a), Some(b)) => disjoint(root, &a, &b, depth - 1),
            _ => false,
        }
    })
}

/// The values of a schema that lists them.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let one = schema.get("const").map(|value| vec![value.clone()]);
    one.or_else(|| schema.get("enum")?.as_array().cloned())
}

/// Whether two values are equal, as 1 and 1.0 are.
fn are_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| are_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The types of a schema's values; an integer is a number.
fn kinds(schema: &Value) -> Vec<&'static str> {
    let of_value = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let mut kinds: Vec<_> = match (values(schema), types(schema)) {
        (Some(values), _) => values.iter().map(of_value).collect(),
        (None, Some(types)) => types,
        (None, None) => TYPES.to_vec(),
    };
    kinds.iter_mut().filter(|kind| **kind == "integer").for_each(|kind| *kind = "number");
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
