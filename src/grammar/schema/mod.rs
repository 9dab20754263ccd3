//! JSON schemas: walked before a grammar is made of them.
//!
//! The walk refuses what a grammar cannot say, and names the part of the schema. It writes the
//! schema again in a plainer form, which means the same: with keywords of one draft, with references
//! to `#/$defs/0`, `#/$defs/1` and so on, and with patterns in the syntax of Rust. So llguidance sees
//! nothing that it ignores or reads in another way.

mod any;
mod at;
mod blame;
mod disjoint;
mod formats;
mod keywords;
mod numbers;
mod possible;
mod references;
mod values;
mod walk;
mod weigh;

use serde_json::{Map, Value, json};

use crate::error::Error;
use at::At;

/// Bytes of a schema at most.
const MAX_BYTES: usize = 1 << 18;

/// A schema in its plainer form.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The plainer form that llguidance reads.
    pub(crate) plain: Value,
    /// The schema as it was given.
    given: Value,
}

/// Checks a JSON schema as [`crate::Grammar::new`] does before it makes a grammar.
///
/// Errors: [`Error::Schema`].
pub fn check(schema: &str) -> Result<(), Error> {
    checked(schema).map(|_| ())
}

pub(crate) fn checked(schema: &str) -> Result<Checked, Error> {
    let whole = At::Whole;
    if schema.len() > MAX_BYTES {
        return whole.refuse(format!("has {} bytes, more than {MAX_BYTES}", schema.len()));
    }
    match serde_json::from_str(schema) {
        Ok(given) => checked_of(given),
        Err(error) => whole.refuse(format!("cannot be read as JSON: {error}")),
    }
}

/// Checks a JSON schema that has been read.
pub(crate) fn checked_of(given: Value) -> Result<Checked, Error> {
    let plain = walk::plain(&given, &given, &At::Whole)?;
    Ok(Checked { plain: with_options(plain), given })
}

/// The plain form of a schema for the arguments of calls, which models write as Python's
/// `json.dumps` does: with a space after each comma and each colon.
pub(crate) fn of_calls(plain: &Value) -> Value {
    let mut plain = plain.clone();
    plain["x-guidance"]["item_separator"] = ", ".into();
    plain["x-guidance"]["key_separator"] = ": ".into();
    plain
}

impl Checked {
    /// The error when llguidance has `said` this of the plainer form.
    pub(crate) fn blamed(&self, said: &str) -> Error {
        blame::blamed(&self.given, said)
    }
}

/// A schema of any object, as `json_object` asks for it.
pub(crate) fn any_object() -> Value {
    with_options(json!({
        "type": "object",
        "additionalProperties": { "$ref": any::ANY },
        "$defs": { "any": any::any() },
    }))
}

/// Adds the options with which llguidance reads the schema: no white space, and one way to write a
/// key. With escapes such as `\u0061`, an answer could have a key twice in two ways.
fn with_options(plain: Value) -> Value {
    let mut plain = match plain {
        Value::Object(plain) => plain,
        _ => Map::new(),
    };
    let options = json!({
        "item_separator": ",",
        "key_separator": ":",
        "whitespace_flexible": false,
        "json_allowed_escapes": "nrbtf\\\"",
    });
    plain.insert("x-guidance".into(), options);
    Value::Object(plain)
}
