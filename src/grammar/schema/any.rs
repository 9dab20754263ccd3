//! The schema of any value.

use serde_json::{Value, json};

use super::numbers;

/// The definition of any value.
pub(super) const ANY: &str = "#/$defs/any";

/// Any value. llguidance has it too, but its numbers could be too large to be read.
pub(super) fn any() -> Value {
    let any = json!({ "$ref": ANY });
    json!({ "anyOf": [
        { "type": ["null", "boolean", "string"] },
        { "type": "number", "minimum": -numbers::MAX, "maximum": numbers::MAX },
        { "type": "array", "items": any },
        { "type": "object", "additionalProperties": any },
    ] })
}
