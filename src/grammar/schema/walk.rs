//! The walk over a schema, which writes its plainer form.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::any::{ANY, any};
use super::at::At;
use super::disjoint::Search;
use super::formats::{self, Format};
use super::keywords::{check_keyword, check_type, is_intersected, types};
use super::possible::{can_end, possible, without_the_impossible};
use super::references::target;
use super::values::{Values, counts, plain_pattern};
use super::{numbers, weigh};
use crate::error::Error;

/// Schemas within a schema at most.
const MAX_SCHEMAS: usize = 1_000;

/// Schemas around a schema at most, those that refer to it included.
const MAX_DEPTH: usize = 128;

/// Keys of an object that are not required, at most. Any of them may follow another.
const MAX_OPTIONAL: usize = 200;

/// Options of a value at most, but for values that are listed. Each of them may be the one.
const MAX_OPTIONS: usize = 100;

/// Patterns of keys at most, of one object and all together. Each is compared with each other.
const MAX_KEY_PATTERNS: usize = 8;
const MAX_ALL_KEY_PATTERNS: usize = 32;

/// Patterns and formats of strings at most, all together.
const MAX_PATTERNS: usize = 200;

/// The surroundings of a schema.
#[derive(Clone, Copy)]
struct Around {
    /// How many schemas.
    depth: usize,
    /// Whether the schema is intersected with another.
    is_intersected: bool,
}

/// The plainer form of `schema`, a part of `root`, with the definitions that it needs.
pub(super) fn plain(root: &Value, schema: &Value, at: &At<'_>) -> Result<Value, Error> {
    let mut walk = Walk {
        root,
        numbers: HashMap::new(),
        definitions: Vec::new(),
        pointers: Vec::new(),
        intersections: Vec::new(),
        n_schemas: 0,
        values: Values::default(),
        n_patterns: 0,
        n_key_patterns: 0,
        search: None,
        has_any: false,
        multiples: Vec::new(),
    };
    let plain = walk.schema(schema, at, Around { depth: 0, is_intersected: false })?;
    walk.finished(plain, at)
}

/// Writes the plainer form of a schema and of all that it refers to.
struct Walk<'a> {
    root: &'a Value,
    /// The number of each definition, by the pointer to its schema in the caller's, and by whether that
    /// is part of an intersection.
    numbers: HashMap<(String, bool), usize>,
    /// The definitions. Those whose walk has not ended are `None`.
    definitions: Vec<Option<Value>>,
    pointers: Vec<String>,
    /// The pointers to the schemas that are intersections, and their plainer forms.
    intersections: Vec<(String, Value)>,
    n_schemas: usize,
    values: Values,
    n_patterns: usize,
    n_key_patterns: usize,
    /// Looks whether options of `oneOf` are disjoint.
    search: Option<Search<'a>>,
    /// Whether there is a reference to [`any`].
    has_any: bool,
    /// Every `multipleOf` of an intersection: another of them may hold for the same number.
    multiples: Vec<f64>,
}

impl<'a> Walk<'a> {
    /// Makes the whole schema of `plain` and the definitions that it refers to, without the options
    /// that no value can meet.
    fn finished(self, mut plain: Value, at: &At<'_>) -> Result<Value, Error> {
        let mut definitions: Vec<Value> = self.definitions.into_iter().flatten().collect();
        let possible = possible(&definitions);
        if !can_end(&plain, &possible) {
            let why = "cannot be met: no value of it ends";
            return match possible.iter().position(|possible| !possible) {
                Some(n) => At::Pointed(&self.pointers[n]).refuse(why),
                None => at.refuse("cannot be met"),
            };
        }
        without_the_impossible(&mut plain, &possible);
        definitions.iter_mut().for_each(|one| without_the_impossible(one, &possible));
        for (pointer, mut schema) in self.intersections {
            without_the_impossible(&mut schema, &possible);
            weigh::check(&schema, &definitions).or_else(|why| At::Pointed(&pointer).refuse(why))?;
        }
        let named = definitions.into_iter().enumerate();
        let mut named: Map<_, _> = named.map(|(n, one)| (n.to_string(), one)).collect();
        if self.has_any {
            named.insert("any".into(), any());
        }
        if let Value::Object(plain) = &mut plain {
            plain.insert("$defs".into(), Value::Object(named));
        }
        Ok(plain)
    }

    fn schema(&mut self, schema: &'a Value, at: &At<'_>, around: Around) -> Result<Value, Error> {
        self.n_schemas += 1;
        if self.n_schemas > MAX_SCHEMAS {
            return at.refuse(format!("is one schema more than {MAX_SCHEMAS}, which is the limit"));
        }
        if around.depth > MAX_DEPTH {
            return at.refuse(format!("is deeper than {MAX_DEPTH} schemas, which is the limit"));
        }
        let is_root = std::ptr::eq(schema, self.root);
        let schema = match schema {
            Value::Bool(true) => return Ok(self.any(around)),
            Value::Bool(false) => return Ok(schema.clone()),
            Value::Object(schema) => schema,
            _ => return at.refuse("must be an object or a boolean"),
        };
        for (key, value) in schema {
            check_keyword(key, value, &at.key(key), is_root)?;
        }
        let is_intersected = is_intersected(schema);
        let within = Around {
            depth: around.depth + 1,
            is_intersected: around.is_intersected || is_intersected,
        };
        let mut plain = Map::new();
        let mut all_of = Vec::new();
        self.own(schema, at, within, &mut plain, &mut all_of)?;
        self.values.listed(schema, at, &mut plain)?;
        for (n, part) in list(schema, "allOf", at)?.iter().enumerate() {
            all_of.push(self.schema(part, &at.key("allOf").index(n), within)?);
        }
        let one_of = self.options(schema, "oneOf", at, within)?;
        if let (Some(_), Some(given)) = (&one_of, schema.get("oneOf").and_then(Value::as_array)) {
            self.check_disjoint(given, &at.key("oneOf"))?;
        }
        let any_of = self.options(schema, "anyOf", at, within)?;
        for options in [any_of, one_of].into_iter().flatten() {
            match plain.contains_key("anyOf") {
                false => drop(plain.insert("anyOf".into(), Value::Array(options))),
                true => all_of.push(json!({ "anyOf": options })),
            }
        }
        if let Some(reference) = schema.get("$ref") {
            let number = self.definition(reference, &at.key("$ref"), within)?;
            plain.insert("$ref".into(), format!("#/$defs/{number}").into());
        }
        if !all_of.is_empty() {
            plain.insert("allOf".into(), Value::Array(all_of));
        }
        if is_intersected && !around.is_intersected {
            self.intersections.push((at.to_string(), Value::Object(plain.clone())));
        }
        match plain.is_empty() {
            true => Ok(self.any(around)),
            false => Ok(Value::Object(plain)),
        }
    }

    /// The schema of any value. Within an intersection it is llguidance's own: two that refer to
    /// themselves could not be intersected.
    fn any(&mut self, around: Around) -> Value {
        match around.is_intersected {
            true => json!({}),
            false => {
                self.has_any = true;
                json!({ "$ref": ANY })
            }
        }
    }

    /// The keywords that say something about values of one type.
    fn own(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        within: Around,
        plain: &mut Map<String, Value>,
        all_of: &mut Vec<Value>,
    ) -> Result<(), Error> {
        if let Some(given) = schema.get("type") {
            check_type(given, &at.key("type"))?;
            plain.insert("type".into(), given.clone());
        }
        self.strings(schema, at, plain, all_of)?;
        self.arrays(schema, at, within, plain)?;
        self.objects(schema, at, within, plain)?;
        let kinds = types(schema.get("type"));
        let is = |kind| kinds.as_ref().is_some_and(|kinds| kinds.contains(&kind));
        // Without a type, other keywords of one type make llguidance write all types.
        let of_any_type = kinds.is_none() && !plain.is_empty();
        if is("number") || is("integer") || of_any_type || numbers::has_any(schema) {
            let only_integers = is("integer") && !is("number");
            numbers::write(schema, only_integers, within.is_intersected, at, plain)?;
            self.check_multiple(schema, at, within)?;
        }
        // Without a schema for them, items and properties may be any value.
        for (kind, key) in [("array", "items"), ("object", "additionalProperties")] {
            if (is(kind) || of_any_type) && !plain.contains_key(key) {
                let any = self.any(within);
                plain.insert(key.into(), any);
            }
        }
        Ok(())
    }

    fn check_multiple(
        &mut self,
        schema: &Map<String, Value>,
        at: &At<'_>,
        within: Around,
    ) -> Result<(), Error> {
        let Some(step) = schema.get("multipleOf").and_then(Value::as_f64) else { return Ok(()) };
        if within.is_intersected && !self.multiples.contains(&step) {
            self.multiples.push(step);
        }
        let together = if within.is_intersected { &self.multiples[..] } else { &[step] };
        match numbers::fit_together(together) {
            true => Ok(()),
            false => at.key("multipleOf").refuse(format!(
                "has too many digits, or is more than {}, alone or with another of the schema",
                numbers::MAX_MULTIPLE
            )),
        }
    }

    fn strings(
        &mut self,
        schema: &Map<String, Value>,
        at: &At<'_>,
        plain: &mut Map<String, Value>,
        all_of: &mut Vec<Value>,
    ) -> Result<(), Error> {
        counts(schema, ["minLength", "maxLength"], at, plain)?;
        let named = ["pattern", "format"].into_iter().find(|key| schema.contains_key(*key));
        self.n_patterns += usize::from(named.is_some());
        if let Some(key) = named.filter(|_| self.n_patterns > MAX_PATTERNS) {
            let why =
                format!("is one pattern or format more than {MAX_PATTERNS}, which is the limit");
            return at.key(key).refuse(why);
        }
        let given = schema.get("pattern");
        let rewritten = given.and_then(Value::as_str).and_then(formats::rewritten);
        let mut patterns = Vec::new();
        if let Some(pattern) = given {
            let pattern = rewritten.map(|(pattern, _)| pattern).or(pattern.as_str());
            patterns.push(plain_pattern(pattern, &at.key("pattern"))?);
        }
        let format = schema.get("format");
        if let Some(format) = format.filter(|name| rewritten.is_none_or(|(_, of)| *name != of)) {
            let name = format.as_str();
            match name.and_then(Format::named) {
                Some(Format::Known(name, pattern)) => {
                    plain.insert("format".into(), name.into());
                    if pattern.is_some() {
                        patterns.push(plain_pattern(pattern, &at.key("format"))?);
                    }
                }
                Some(Format::Pattern(pattern)) => {
                    patterns.push(plain_pattern(Some(&pattern), &at.key("format"))?);
                }
                None if name.is_some_and(|name| Format::is_note(schema, name)) => {}
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
        within: Around,
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
            items.push(self.schema(item, &at.key(first).index(n), within)?);
        }
        if !items.is_empty() {
            plain.insert("prefixItems".into(), Value::Array(items));
        }
        if let Some(item) = schema.get(rest) {
            let item = self.schema(item, &at.key(rest), within)?;
            plain.insert("items".into(), item);
        }
        Ok(())
    }

    fn objects(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        within: Around,
        plain: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        counts(schema, ["minProperties", "maxProperties"], at, plain)?;
        let required = self.required(schema, at, plain)?;
        let mut n_optional = 0;
        for key in ["properties", "patternProperties"] {
            let Some(given) = schema.get(key) else { continue };
            let at = at.key(key);
            let Value::Object(given) = given else { return at.refuse("must be an object") };
            let mut properties = Map::new();
            for (name, property) in given {
                let at = at.key(name);
                let name = match key {
                    "properties" => {
                        n_optional += usize::from(!required.contains(&**name));
                        name.clone()
                    }
                    _ => self.key_pattern(name, properties.len(), &at)?,
                };
                properties.insert(name, self.schema(property, &at, within)?);
            }
            if n_optional > MAX_OPTIONAL {
                let why = format!("has more than {MAX_OPTIONAL} keys that are not required");
                return at.refuse(why);
            }
            plain.insert(key.into(), Value::Object(properties));
        }
        if let Some(more) = schema.get("additionalProperties") {
            let more = self.schema(more, &at.key("additionalProperties"), within)?;
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

    /// The keys that an object must have.
    fn required(
        &mut self,
        schema: &'a Map<String, Value>,
        at: &At<'_>,
        plain: &mut Map<String, Value>,
    ) -> Result<HashSet<&'a str>, Error> {
        let Some(keys) = schema.get("required") else { return Ok(HashSet::new()) };
        let at = at.key("required");
        let names = keys.as_array().map(|keys| keys.iter().map(Value::as_str).collect());
        let Some(Some(names)) = names else { return at.refuse("must be an array of strings") };
        let names: HashSet<&str> = names;
        if names.len() > MAX_SCHEMAS {
            return at.refuse(format!("has more than {MAX_SCHEMAS} keys, which is the limit"));
        }
        plain.insert("required".into(), keys.clone());
        Ok(names)
    }

    /// The plainer form of a pattern of keys, one of `n` and more of an object.
    fn key_pattern(&mut self, pattern: &str, n: usize, at: &At<'_>) -> Result<String, Error> {
        self.n_key_patterns += 1;
        if n >= MAX_KEY_PATTERNS || self.n_key_patterns > MAX_ALL_KEY_PATTERNS {
            return at.refuse(format!(
                "is one pattern more than {MAX_KEY_PATTERNS} for one object or \
                 {MAX_ALL_KEY_PATTERNS} for all, which are the limits"
            ));
        }
        plain_pattern(Some(pattern), at)
    }

    fn options(
        &mut self,
        schema: &'a Map<String, Value>,
        key: &'static str,
        at: &At<'_>,
        within: Around,
    ) -> Result<Option<Vec<Value>>, Error> {
        if !schema.contains_key(key) {
            return Ok(None);
        }
        let mut options = Vec::new();
        for (n, option) in list(schema, key, at)?.iter().enumerate() {
            options.push(self.schema(option, &at.key(key).index(n), within)?);
        }
        let lists = |option: &&Value| ["const", "enum"].iter().any(|key| option.get(key).is_some());
        let n_others = options.len() - options.iter().filter(lists).count();
        match options.len() {
            0 => at.key(key).refuse("must have a schema at least"),
            _ if n_others > MAX_OPTIONS => at.key(key).refuse(format!(
                "has more than {MAX_OPTIONS} schemas without `const` or `enum`, which is the limit"
            )),
            _ => Ok(Some(options)),
        }
    }

    /// Checks that a value fits one option of `oneOf` at most.
    fn check_disjoint(&mut self, options: &'a [Value], at: &At<'_>) -> Result<(), Error> {
        let root = self.root;
        let search = self.search.get_or_insert_with(|| Search::new(root));
        for (n, a) in options.iter().enumerate() {
            for (m, b) in options.iter().enumerate().skip(n + 1) {
                if !search.are_disjoint(a, b) {
                    if search.is_over() {
                        return at.refuse("has too many options to compare; `anyOf` is supported");
                    }
                    return at.refuse(format!(
                        "is not supported, because a value may fit both {n} and {m}; `anyOf` is"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The number of the definition to which `reference` points.
    fn definition(
        &mut self,
        reference: &Value,
        at: &At<'_>,
        within: Around,
    ) -> Result<usize, Error> {
        let Some(reference) = reference.as_str() else { return at.refuse("must be a string") };
        let (pointer, schema) = match target(self.root, reference) {
            Ok(Some(target)) => target,
            Ok(None) => return at.refuse("leads to nothing"),
            Err(why) => return at.refuse(why),
        };
        let key = (pointer.clone(), within.is_intersected);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = self.definitions.len();
        self.numbers.insert(key, number);
        self.definitions.push(None);
        self.pointers.push(pointer.clone());
        self.definitions[number] = Some(self.schema(schema, &At::Pointed(&pointer), within)?);
        Ok(number)
    }
}

/// The schemas that `key` lists; none if the schema does not have it.
fn list<'a>(schema: &'a Map<String, Value>, key: &str, at: &At<'_>) -> Result<&'a [Value], Error> {
    match schema.get(key) {
        None => Ok(&[]),
        Some(Value::Array(all)) => Ok(all),
        Some(_) => at.key(key).refuse("must be an array of schemas"),
    }
}
