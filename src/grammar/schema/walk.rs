//! The walk over a schema, which writes its plainer form.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::at::At;
use super::disjoint::are_disjoint;
use super::formats::Format;
use super::numbers;
use super::possible::{can_end, possible, without_the_impossible};
use super::references::target;
use crate::error::Error;
use crate::pattern::translated;

/// Schemas within a schema at most.
const MAX_SCHEMAS: usize = 2_000;

/// Schemas around a schema at most, those that refer to it included.
const MAX_DEPTH: usize = 64;

/// Values of `enum` and `const` at most, all together, with the values within them.
const MAX_VALUES: usize = 4_000;

/// The largest count or length. A larger maximum means the same for an answer.
const MAX_COUNT: u64 = 1_000_000;

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

/// Writes the plainer form of a schema and of all that it refers to.
pub(super) struct Walk<'a> {
    root: &'a Value,
    /// The number of each definition, by the pointer to what was given.
    numbers: HashMap<String, usize>,
    definitions: Vec<Value>,
    pointers: Vec<String>,
    n_schemas: usize,
    n_values: usize,
    /// Every `multipleOf`.
    multiples: Vec<f64>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            numbers: HashMap::new(),
            definitions: Vec::new(),
            pointers: Vec::new(),
            n_schemas: 0,
            n_values: 0,
            multiples: Vec::new(),
        }
    }

    /// The plainer form of `schema`, a part of the root, with the definitions that it needs.
    pub(super) fn plain(mut self, schema: &'a Value, at: &At<'_>) -> Result<Value, Error> {
        let mut plain = self.schema(schema, at, 0)?;
        let possible = possible(&self.definitions);
        if !can_end(&plain, &possible) {
            let endless = possible.iter().position(|possible| !possible);
            return match endless {
                Some(n) => {
                    At::Pointed(&self.pointers[n]).refuse("cannot be met: no value of it ends")
                }
                None => at.refuse("cannot be met"),
            };
        }
        without_the_impossible(&mut plain, &possible);
        self.definitions.iter_mut().for_each(|one| without_the_impossible(one, &possible));
        match &mut plain {
            Value::Object(map) if !self.definitions.is_empty() => {
                let named = self.definitions.into_iter().enumerate();
                let named: Map<_, _> = named.map(|(n, one)| (n.to_string(), one)).collect();
                map.insert("$defs".into(), Value::Object(named));
            }
            _ => {}
        }
        Ok(plain)
    }

    fn schema(&mut self, schema: &'a Value, at: &At<'_>, depth: usize) -> Result<Value, Error> {
        self.n_schemas += 1;
        if self.n_schemas > MAX_SCHEMAS {
            return at.refuse(format!("is one schema more than {MAX_SCHEMAS}, which is the limit"));
        }
        if depth > MAX_DEPTH {
            return at.refuse(format!("is deeper than {MAX_DEPTH} schemas, which is the limit"));
        }
        let schema = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(schema) => schema,
            _ => return at.refuse("must be an object or a boolean"),
        };
        for (key, value) in schema {
            check_keyword(key, value, &at.key(key), depth)?;
        }
        let mut plain = Map::new();
        let mut all_of = Vec::new();
        self.own(schema, at, depth, &mut plain, &mut all_of)?;
        self.listed(schema, at, &mut plain)?;
        for (n, part) in list(schema, "allOf", at)?.iter().enumerate() {
            all_of.push(self.schema(part, &at.key("allOf").index(n), depth + 1)?);
        }
        let one_of = self.options(schema, "oneOf", at, depth)?;
        if let (Some(_), Some(given)) = (&one_of, schema.get("oneOf").and_then(Value::as_array)) {
            self.check_disjoint(given, &at.key("oneOf"))?;
        }
        let any_of = self.options(schema, "anyOf", at, depth)?;
        for options in [any_of, one_of].into_iter().flatten() {
            match plain.contains_key("anyOf") {
                false => drop(plain.insert("anyOf".into(), Value::Array(options))),
                true => all_of.push(json!({ "anyOf": options })),
            }
        }
        if !all_of.is_empty() {
            plain.insert("allOf".into(), Value::Array(all_of));
        }
        if let Some(reference) = schema.get("$ref") {
            let number = self.definition(reference, &at.key("$ref"), depth)?;
            plain.insert("$ref".into(), format!("#/$defs/{number}").into());
        }
        Ok(Value::Object(plain))
    }

    /// The keywords that say something about values of one type.
    fn own(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        depth: usize,
        plain: &mut Map<String, Value>,
        all_of: &mut Vec<Value>,
    ) -> Result<(), Error> {
        if let Some(given) = schema.get("type") {
            check_type(given, &at.key("type"))?;
            plain.insert("type".into(), given.clone());
        }
        self.strings(schema, at, plain, all_of)?;
        self.arrays(schema, at, depth, plain)?;
        self.objects(schema, at, depth, plain)?;
        let kinds = schema.get("type").and_then(|_| types(&Value::Object(schema.clone())));
        let is = |kind| kinds.as_ref().is_some_and(|kinds| kinds.contains(&kind));
        // Without a type, other keywords of one type make llguidance write all types.
        let of_any_type = kinds.is_none() && !plain.is_empty();
        if is("number") || is("integer") || of_any_type || numbers::has_any(schema) {
            numbers::write(schema, is("integer") && !is("number"), at, plain)?;
            self.multiples.extend(plain.get("multipleOf").and_then(Value::as_f64));
            self.multiples.dedup();
            if !numbers::fit_together(&self.multiples) {
                let why = "has too many digits, alone or beside another of the schema";
                return at.key("multipleOf").refuse(why);
            }
        }
        Ok(())
    }

    fn strings(
        &mut self,
        schema: &Map<String, Value>,
        at: &At<'_>,
        plain: &mut Map<String, Value>,
        all_of: &mut Vec<Value>,
    ) -> Result<(), Error> {
        counts(schema, ["minLength", "maxLength"], at, plain)?;
        let mut patterns = Vec::new();
        if let Some(pattern) = schema.get("pattern") {
            patterns.push(plain_pattern(pattern.as_str(), &at.key("pattern"))?);
        }
        if let Some(format) = schema.get("format") {
            match format.as_str().and_then(Format::named) {
                Some(Format::Known(name)) => drop(plain.insert("format".into(), name.into())),
                Some(Format::Pattern(pattern)) => {
                    patterns.push(plain_pattern(Some(&pattern), &at.key("format"))?);
                }
                None => {
                    let why = format!("must be one of {}", Format::names());
                    return at.key("format").refuse(why);
                }
            }
        }
        let mut patterns = patterns.into_iter();
        if let Some(first) = patterns.next() {
            plain.insert("pattern".into(), first.into());
        }
        all_of.extend(patterns.map(|pattern| json!({ "pattern": pattern })));
        Ok(())
    }

    fn arrays(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        depth: usize,
        plain: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        counts(schema, ["minItems", "maxItems"], at, plain)?;
        // Until draft 2019-09, a list of items was called `items` and the rest `additionalItems`.
        let (first, rest) = match schema.get("items") {
            Some(Value::Array(_)) => ("items", "additionalItems"),
            _ => ("prefixItems", "items"),
        };
        let mut items = Vec::new();
        for (n, item) in list(schema, first, at)?.iter().enumerate() {
            items.push(self.schema(item, &at.key(first).index(n), depth + 1)?);
        }
        if !items.is_empty() {
            plain.insert("prefixItems".into(), Value::Array(items));
        }
        if let Some(item) = schema.get(rest) {
            let item = self.schema(item, &at.key(rest), depth + 1)?;
            plain.insert("items".into(), item);
        }
        Ok(())
    }

    fn objects(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        depth: usize,
        plain: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        counts(schema, ["minProperties", "maxProperties"], at, plain)?;
        let mut required = HashSet::new();
        if let Some(keys) = schema.get("required") {
            let at = at.key("required");
            let Value::Array(keys) = keys else { return at.refuse("must be an array of strings") };
            for key in keys {
                match key.as_str() {
                    Some(key) => required.insert(key),
                    None => return at.refuse("must be an array of strings"),
                };
                self.count_value(&at)?;
            }
            plain.insert("required".into(), keys.clone().into());
        }
        for key in ["properties", "patternProperties"] {
            let Some(given) = schema.get(key) else { continue };
            let at = at.key(key);
            let Value::Object(given) = given else { return at.refuse("must be an object") };
            let mut properties = Map::new();
            for (name, property) in given {
                let at = at.key(name);
                let name = match key {
                    "properties" => name.clone(),
                    _ => plain_pattern(Some(name), &at)?,
                };
                properties.insert(name, self.schema(property, &at, depth + 1)?);
            }
            plain.insert(key.into(), Value::Object(properties));
        }
        if let Some(more) = schema.get("additionalProperties") {
            let more = self.schema(more, &at.key("additionalProperties"), depth + 1)?;
            plain.insert("additionalProperties".into(), more);
        }
        let is_open = plain.get("additionalProperties") != Some(&Value::Bool(false))
            || plain.contains_key("patternProperties");
        let least = plain.get("minProperties").and_then(Value::as_u64).unwrap_or(0) as usize;
        if is_open && least > required.len() + 1 {
            let why = "is too large: keys that `properties` does not list can be repeated, so that a \
                       grammar cannot count them";
            return at.key("minProperties").refuse(why);
        }
        Ok(())
    }

    /// The values that the schema lists.
    fn listed(
        &mut self,
        schema: &Map<String, Value>,
        at: &At<'_>,
        plain: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        if let Some(value) = schema.get("const") {
            self.value(value, &at.key("const"))?;
            plain.insert("const".into(), value.clone());
        }
        if let Some(given) = schema.get("enum") {
            let at = at.key("enum");
            let values = given.as_array().filter(|values| !values.is_empty());
            let Some(values) = values else { return at.refuse("must be an array of values") };
            for (n, value) in values.iter().enumerate() {
                self.value(value, &at.index(n))?;
            }
            plain.insert("enum".into(), given.clone());
        }
        Ok(())
    }

    /// Checks a value that an answer may have.
    fn value(&mut self, value: &Value, at: &At<'_>) -> Result<(), Error> {
        self.count_value(at)?;
        match value {
            Value::Number(number) if !numbers::is_exact(number) => {
                at.refuse("has more digits than a double holds")
            }
            Value::String(text) if text.chars().any(is_unwritable) => {
                at.refuse("has a control character, which is not supported")
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(n, item)| self.value(item, &at.index(n)))
            }
            Value::Object(map) => {
                map.iter().try_for_each(|(key, value)| self.value(value, &at.key(key)))
            }
            _ => Ok(()),
        }
    }

    fn count_value(&mut self, at: &At<'_>) -> Result<(), Error> {
        self.n_values += 1;
        match self.n_values > MAX_VALUES {
            true => at.refuse(format!("is one value more than {MAX_VALUES}, which is the limit")),
            false => Ok(()),
        }
    }

    fn options(
        &mut self,
        schema: &'a Map<String, Value>,
        key: &'static str,
        at: &At<'_>,
        depth: usize,
    ) -> Result<Option<Vec<Value>>, Error> {
        if !schema.contains_key(key) {
            return Ok(None);
        }
        let mut options = Vec::new();
        for (n, option) in list(schema, key, at)?.iter().enumerate() {
            options.push(self.schema(option, &at.key(key).index(n), depth + 1)?);
        }
        match options.is_empty() {
            true => at.key(key).refuse("must have a schema at least"),
            false => Ok(Some(options)),
        }
    }

    /// Checks that a value fits one option of `oneOf` at most.
    fn check_disjoint(&mut self, options: &[Value], at: &At<'_>) -> Result<(), Error> {
        for (n, a) in options.iter().enumerate() {
            for (m, b) in options.iter().enumerate().skip(n + 1) {
                self.count_value(at)?;
                if !are_disjoint(self.root, a, b) {
                    return at.refuse(format!(
                        "is not supported, because a value may fit both {n} and {m}; `anyOf` is"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The number of the definition to which `reference` points.
    fn definition(&mut self, reference: &Value, at: &At<'_>, depth: usize) -> Result<usize, Error> {
        let Some(reference) = reference.as_str() else { return at.refuse("must be a string") };
        let (pointer, schema) = match target(self.root, reference) {
            Ok(Some(target)) => target,
            Ok(None) => return at.refuse("leads to nothing"),
            Err(why) => return at.refuse(why),
        };
        if let Some(number) = self.numbers.get(&pointer) {
            return Ok(*number);
        }
        let number = self.definitions.len();
        self.numbers.insert(pointer.clone(), number);
        self.definitions.push(Value::Bool(true));
        self.pointers.push(pointer.clone());
        self.definitions[number] = self.schema(schema, &At::Pointed(&pointer), depth + 1)?;
        Ok(number)
    }
}

/// Refuses keywords that are not supported, and names that differ from a keyword only in case. All
/// other names are notes, as JSON Schema has it.
fn check_keyword(key: &str, value: &Value, at: &At<'_>, depth: usize) -> Result<(), Error> {
    if UNSUPPORTED.contains(&key) {
        let says_nothing = match key {
            "$id" => depth == 0,
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

fn check_type(given: &Value, at: &At<'_>) -> Result<(), Error> {
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

/// The types that a schema names; `None` if it names none.
pub(super) fn types(schema: &Value) -> Option<Vec<&'static str>> {
    let names = match schema.get("type")? {
        Value::Array(names) => &names[..],
        name => std::slice::from_ref(name),
    };
    let known = |name: &Value| {
        let mut all = TYPES.into_iter().chain(["integer"]);
        all.find(|kind| name.as_str() == Some(kind))
    };
    Some(names.iter().filter_map(known).collect())
}

/// The schemas that `key` lists; none if the schema does not have it.
fn list<'a>(schema: &'a Map<String, Value>, key: &str, at: &At<'_>) -> Result<&'a [Value], Error> {
    match schema.get(key) {
        None => Ok(&[]),
        Some(Value::Array(all)) => Ok(all),
        Some(_) => at.key(key).refuse("must be an array of schemas"),
    }
}

/// Writes a least and a largest count.
fn counts(
    schema: &Map<String, Value>,
    [least, most]: [&str; 2],
    at: &At<'_>,
    plain: &mut Map<String, Value>,
) -> Result<(), Error> {
    let mut count = |key: &str| {
        let Some(value) = schema.get(key) else { return Ok(None) };
        let whole = |number: f64| number.fract() == 0.0 && number >= 0.0;
        let Some(count) = value.as_f64().filter(|number| whole(*number)) else {
            return at.key(key).refuse("must be a whole number, 0 or more");
        };
        let count = (count as u64).min(MAX_COUNT);
        plain.insert(key.into(), count.into());
        Ok(Some(count))
    };
    let fewest = count(least)?;
    count(most)?;
    match fewest {
        Some(MAX_COUNT) => at.key(least).refuse(format!("must be less than {MAX_COUNT}")),
        _ => Ok(()),
    }
}

fn plain_pattern(pattern: Option<&str>, at: &At<'_>) -> Result<String, Error> {
    let Some(pattern) = pattern else { return at.refuse("must be a string") };
    translated(pattern).or_else(|why| at.refuse(format!("is a regular expression that {why}")))
}

/// Whether an answer cannot have this character in a string.
fn is_unwritable(c: char) -> bool {
    c.is_ascii_control() && !['\n', '\r', '\t', '\u{8}', '\u{C}'].contains(&c)
}
