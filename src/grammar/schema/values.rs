//! The values that a schema lists, and its counts and patterns.

use serde_json::{Map, Value};

use super::at::At;
use super::numbers;
use crate::error::Error;
use crate::pattern::translated;

/// Values of `enum` and `const` at most, all together, with the values within them.
const MAX_VALUES: usize = 4_000;

/// The largest count or length. A larger maximum means the same for an answer.
const MAX_COUNT: u64 = 1_000_000;

/// Counts the values that all schemas list.
#[derive(Default)]
pub(super) struct Values {
    n: usize,
}

impl Values {
    /// Writes the values that `schema` lists.
    ///
    /// Errors: values that an answer cannot have, and too many of them.
    pub(super) fn listed(
        &mut self,
        schema: &Map<String, Value>,
        at: &At<'_>,
        plain: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        if let Some(value) = schema.get("const") {
            self.check(value, &at.key("const"))?;
            plain.insert("const".into(), value.clone());
        }
        if let Some(given) = schema.get("enum") {
            let at = at.key("enum");
            let values = given.as_array().filter(|values| !values.is_empty());
            let Some(values) = values else { return at.refuse("must be an array of values") };
            for (n, value) in values.iter().enumerate() {
                self.check(value, &at.index(n))?;
            }
            plain.insert("enum".into(), given.clone());
        }
        Ok(())
    }

    /// Checks a value that an answer may have.
    fn check(&mut self, value: &Value, at: &At<'_>) -> Result<(), Error> {
        self.n += 1;
        if self.n > MAX_VALUES {
            let why = format!("is one value more than {MAX_VALUES}, which is the limit");
            return at.refuse(why);
        }
        match value {
            Value::Number(number) if !numbers::is_exact(number) => {
                at.refuse("has more digits than a double holds")
            }
            Value::String(text) if text.chars().any(is_unwritable) => {
                at.refuse("has a control character, which is not supported")
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(n, item)| self.check(item, &at.index(n)))
            }
            Value::Object(map) => {
                map.iter().try_for_each(|(key, value)| self.check(value, &at.key(key)))
            }
            _ => Ok(()),
        }
    }
}

/// Writes a least and a largest count.
pub(super) fn counts(
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

/// A regular expression in the syntax of Rust.
pub(super) fn plain_pattern(pattern: Option<&str>, at: &At<'_>) -> Result<String, Error> {
    let Some(pattern) = pattern else { return at.refuse("must be a string") };
    translated(pattern).or_else(|why| at.refuse(format!("is a regular expression that {why}")))
}

/// Whether an answer cannot have this character in a string.
fn is_unwritable(c: char) -> bool {
    c.is_ascii_control() && !['\n', '\r', '\t', '\u{8}', '\u{C}'].contains(&c)
}
