//! How much work it is to intersect schemas.
//!
//! llguidance intersects each option of one schema with each of another, and copies them for it. The
//! walk here goes the same way without copies, and ends when the work is too much.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::possible::definition;

/// The most work: schemas and values that are copied.
const MAX_COPIED: usize = 200_000;

/// Patterns and formats that hold for one string at most. The states of their automata multiply.
const MAX_PATTERNS: usize = 3;

/// Options of one value at most, which are those of each union times those of each other.
const MAX_OPTIONS: usize = 100;

/// How deep an intersection goes at most, as in llguidance.
const MAX_DEPTH: usize = 128;

/// Refuses a schema whose `allOf`s and references would take too long to join into one.
///
/// Errors: the reason.
pub(super) fn check(schema: &Value, definitions: &[Value]) -> Result<(), &'static str> {
    let mut scales = Scales { definitions, left: MAX_COPIED };
    let all = scales.all([schema])?;
    scales.weigh(&all, 0)
}

/// Schemas that hold for the same value.
#[derive(Clone, Default)]
struct All<'a> {
    schemas: Vec<&'a Map<String, Value>>,
    /// The lists of options of which one holds.
    unions: Vec<&'a [Value]>,
}

struct Scales<'a> {
    definitions: &'a [Value],
    /// The work that may be left.
    left: usize,
}

impl<'a> Scales<'a> {
    fn weigh(&mut self, all: &All<'a>, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("intersects schemas that refer to themselves");
        }
        let has = |key: &str| all.schemas.iter().filter(|one| one.contains_key(key)).count();
        if has("pattern") + has("format") > MAX_PATTERNS {
            return Err("has too many patterns and formats for one string");
        }
        let n_values = |one: &&Map<String, Value>| {
            one.get("enum").and_then(Value::as_array).map_or(1, Vec::len)
        };
        let n_values = all.schemas.iter().map(n_values).fold(1, usize::saturating_mul);
        let size = all.schemas.iter().map(|one| one.values().map(size).sum::<usize>()).sum();
        self.spend(n_values.saturating_mul(size))?;
        let n_options = all.unions.iter().map(|options| options.len());
        if n_options.fold(1, usize::saturating_mul) > MAX_OPTIONS {
            return Err("intersects too many options");
        }
        let Some((options, unions)) = all.unions.split_last() else {
            return self.weigh_parts(all, depth);
        };
        for option in *options {
            let more = self.all([option])?;
            let schemas = [&all.schemas[..], &more.schemas].concat();
            let unions = [unions, &more.unions].concat();
            self.weigh(&All { schemas, unions }, depth + 1)?;
        }
        Ok(())
    }

    /// Weighs the properties and the items of schemas without options.
    fn weigh_parts(&mut self, all: &All<'a>, depth: usize) -> Result<(), &'static str> {
        if all.schemas.len() < 2 {
            return Ok(());
        }
        let properties = |one: &&'a Map<String, Value>| one.get("properties")?.as_object();
        let keys: BTreeSet<&String> =
            all.schemas.iter().filter_map(properties).flat_map(Map::keys).collect();
        for key in keys {
            let part = |one: &&'a Map<String, Value>| {
                properties(one)
                    .and_then(|properties| properties.get(key))
                    .or_else(|| one.get("additionalProperties"))
            };
            self.weigh_all(all.schemas.iter().filter_map(part), depth)?;
        }
        let listed = |one: &&'a Map<String, Value>| one.get("prefixItems")?.as_array();
        let n_items = all.schemas.iter().filter_map(listed).map(Vec::len).max().unwrap_or(0);
        for n in 0..n_items {
            let part = |one: &&'a Map<String, Value>| {
                listed(one).and_then(|items| items.get(n)).or_else(|| one.get("items"))
            };
            self.weigh_all(all.schemas.iter().filter_map(part), depth)?;
        }
        for key in ["items", "additionalProperties"] {
            self.weigh_all(all.schemas.iter().filter_map(|one| one.get(key)), depth)?;
        }
        Ok(())
    }

    fn weigh_all(
        &mut self,
        parts: impl Iterator<Item = &'a Value>,
        depth: usize,
    ) -> Result<(), &'static str> {
        let all = self.all(parts)?;
        match all.schemas.len() > 1 || !all.unions.is_empty() {
            true => self.weigh(&all, depth + 1),
            false => Ok(()),
        }
    }

    /// The schemas that hold with these.
    fn all(&mut self, given: impl IntoIterator<Item = &'a Value>) -> Result<All<'a>, &'static str> {
        let mut all = All::default();
        let mut rest: Vec<&Value> = given.into_iter().collect();
        while let Some(schema) = rest.pop() {
            self.spend(1)?;
            let Value::Object(schema) = schema else { continue };
            let listed = |key: &str| schema.get(key).and_then(Value::as_array);
            if let Some(number) = schema.get("$ref").and_then(definition) {
                rest.extend(self.definitions.get(number));
            }
            rest.extend(listed("allOf").into_iter().flatten());
            all.unions.extend(listed("anyOf").map(Vec::as_slice));
            all.schemas.push(schema);
        }
        Ok(all)
    }

    fn spend(&mut self, work: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(work).ok_or("intersects too many schemas")?;
        Ok(())
    }
}

/// The number of values in a value.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}
