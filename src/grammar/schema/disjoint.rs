//! Whether two schemas have no value in common. Then `oneOf` says the same as `anyOf`.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::keywords::{TYPES, types};
use super::references::target;

/// How deep to look, and how many pairs of schemas at most.
const MAX_DEPTH: usize = 6;
const MAX_PAIRS: usize = 20_000;

/// To compare this many listed values takes as long as to compare two schemas.
const VALUES_OF_PAIR: usize = 64;

/// Finds out whether schemas are disjoint, until it has looked at too many.
pub(super) struct Search<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, left: MAX_PAIRS }
    }

    /// Whether it is sure that no value fits both.
    pub(super) fn are_disjoint(&mut self, a: &'a Value, b: &'a Value) -> bool {
        self.disjoint(a, b, MAX_DEPTH)
    }

    /// Whether it has looked at too many to be sure.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    fn disjoint(&mut self, a: &'a Value, b: &'a Value, depth: usize) -> bool {
        if a == &Value::Bool(false) || b == &Value::Bool(false) {
            return true;
        }
        if depth == 0 || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let depth = depth - 1;
        // All parts of a schema hold, so it is enough if one of them excludes the other schema.
        self.parts(a).into_iter().any(|part| self.disjoint(part, b, depth))
            || self.parts(b).into_iter().any(|part| self.disjoint(a, part, depth))
            || options(a).is_some_and(|all| all.iter().all(|a| self.disjoint(a, b, depth)))
            || options(b).is_some_and(|all| all.iter().all(|b| self.disjoint(a, b, depth)))
            || self.differ(a, b, depth)
    }

    fn parts(&self, schema: &'a Value) -> Vec<&'a Value> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let referred = reference.and_then(|reference| Some(target(self.root, reference).ok()??.1));
        let all = schema.get("allOf").and_then(Value::as_array);
        referred.into_iter().chain(all.into_iter().flatten()).collect()
    }

    /// Whether the two differ in themselves: in their types, their values or a property.
    fn differ(&mut self, a: &'a Value, b: &'a Value, depth: usize) -> bool {
        if let (Some(a), Some(b)) = (values(a), values(b)) {
            self.left = self.left.saturating_sub((a.len() + b.len()) / VALUES_OF_PAIR);
            let known: HashSet<String> = a.iter().map(identity).collect();
            return !b.iter().any(|b| known.contains(&identity(b)));
        }
        let (kinds_a, kinds_b) = (kinds(a), kinds(b));
        if !kinds_a.iter().any(|kind| kinds_b.contains(kind)) {
            return true;
        }
        if kinds_a != ["object"] || kinds_b != ["object"] {
            return false;
        }
        let required = |schema: &'a Value| schema.get("required").and_then(Value::as_array);
        let keys = [required(a), required(b)].into_iter().flatten().flatten();
        let property = |schema: &'a Value, key: &str| schema.get("properties")?.get(key);
        keys.filter_map(Value::as_str).any(|key| match (property(a, key), property(b, key)) {
            (Some(a), Some(b)) => self.disjoint(a, b, depth),
            _ => false,
        })
    }
}

/// The schemas of which one holds.
fn options(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

/// The values of a schema that lists them.
fn values(schema: &Value) -> Option<&[Value]> {
    match schema.get("const") {
        Some(one) => Some(std::slice::from_ref(one)),
        None => schema.get("enum")?.as_array().map(Vec::as_slice),
    }
}

/// A text that is the same for equal values, such as 1 and 1.0.
fn identity(value: &Value) -> String {
    match value {
        // 0 and -0 are equal too.
        Value::Number(number) => format!("{:?}", number.as_f64().map(|number| number + 0.0)),
        Value::Array(items) => format!("{:?}", items.iter().map(identity).collect::<Vec<_>>()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key, identity(value)));
            format!("{:?}", fields.collect::<BTreeMap<_, _>>())
        }
        other => other.to_string(),
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
    let mut kinds: Vec<_> = match (values(schema), types(schema.get("type"))) {
        (Some(values), _) => values.iter().map(of_value).collect(),
        (None, Some(types)) => types,
        (None, None) => TYPES.to_vec(),
    };
    kinds.iter_mut().filter(|kind| **kind == "integer").for_each(|kind| *kind = "number");
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
