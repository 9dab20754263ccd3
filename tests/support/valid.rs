//! Whether a value is valid by a JSON schema. It knows the keywords that the tests use, and is
//! written after the standard alone.

use std::net::{Ipv4Addr, Ipv6Addr};

use regex::Regex;
use serde_json::{Map, Value};

/// Errors: the keyword that `value` does not keep, with the value.
pub(crate) fn validate(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Bool(false) => return Err(format!("false: {value}")),
        schema => schema.as_object().expect("a schema"),
    };
    for (keyword, wanted) in schema {
        if !keeps(root, schema, keyword, wanted, value) {
            return Err(format!("{keyword} {wanted}: {value}"));
        }
    }
    Ok(())
}

fn keeps(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    wanted: &Value,
    value: &Value,
) -> bool {
    let is_valid = |schema: &Value, value: &Value| validate(root, schema, value).is_ok();
    let n_valid = || list(wanted).iter().filter(|schema| is_valid(schema, value)).count();
    match keyword {
        "$ref" => {
            let pointer = text(wanted).trim_start_matches('#').replace("%25", "%");
            is_valid(root.pointer(&pointer).expect("a target"), value)
        }
        "allOf" => n_valid() == list(wanted).len(),
        "anyOf" => n_valid() > 0,
        "oneOf" => n_valid() == 1,
        "const" => are_equal(wanted, value),
        "enum" => list(wanted).iter().any(|one| are_equal(one, value)),
        "type" => match wanted {
            Value::Array(kinds) => kinds.iter().any(|kind| is_a(text(kind), value)),
            kind => is_a(text(kind), value),
        },
        "$defs" | "$schema" | "title" | "description" => true,
        _ => match value {
            Value::Number(_) => keeps_number(schema, keyword, wanted, value.as_f64().unwrap()),
            Value::String(string) => keeps_string(keyword, wanted, string),
            Value::Array(items) => keeps_array(root, schema, keyword, wanted, items),
            Value::Object(map) => keeps_object(root, schema, keyword, wanted, map),
            _ => true,
        },
    }
}

fn keeps_number(schema: &Map<String, Value>, keyword: &str, wanted: &Value, number: f64) -> bool {
    let is_exclusive = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let Some(bound) = wanted.as_f64() else { return true };
    match keyword {
        "minimum" if is_exclusive("exclusiveMinimum") => number > bound,
        "maximum" if is_exclusive("exclusiveMaximum") => number < bound,
        "minimum" => number >= bound,
        "maximum" => number <= bound,
        "exclusiveMinimum" => number > bound,
        "exclusiveMaximum" => number < bound,
        "multipleOf" => (number / bound).fract() == 0.0,
        _ => true,
    }
}

fn keeps_string(keyword: &str, wanted: &Value, string: &str) -> bool {
    match keyword {
        "minLength" => string.chars().count() >= number(wanted),
        "maxLength" => string.chars().count() <= number(wanted),
        "pattern" => matches(text(wanted), string),
        "format" => is_of_format(text(wanted), string),
        _ => true,
    }
}

fn keeps_array(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    wanted: &Value,
    items: &[Value],
) -> bool {
    let fit = |schemas: &[Value]| {
        schemas.iter().zip(items).all(|(schema, item)| validate(root, schema, item).is_ok())
    };
    let all = |items: &[Value]| items.iter().all(|item| validate(root, wanted, item).is_ok());
    let first = schema.get("prefixItems").or_else(|| schema.get("items").filter(|i| i.is_array()));
    let n_first = first.map_or(0, |first| list(first).len()).min(items.len());
    match keyword {
        "minItems" => items.len() >= number(wanted),
        "maxItems" => items.len() <= number(wanted),
        "prefixItems" => fit(list(wanted)),
        "items" if wanted.is_array() => fit(list(wanted)),
        "items" | "additionalItems" => all(&items[n_first..]),
        _ => true,
    }
}

fn keeps_object(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    wanted: &Value,
    map: &Map<String, Value>,
) -> bool {
    let part = |key: &str| schema.get(key).and_then(Value::as_object);
    let is_valid = |schema: &Value, value: &Value| validate(root, schema, value).is_ok();
    let is_listed = |key: &str| {
        part("properties").is_some_and(|properties| properties.contains_key(key))
            || part("patternProperties")
                .is_some_and(|patterns| patterns.keys().any(|pattern| matches(pattern, key)))
    };
    match keyword {
        "minProperties" => map.len() >= number(wanted),
        "maxProperties" => map.len() <= number(wanted),
        "required" => list(wanted).iter().all(|key| map.contains_key(text(key))),
        "properties" => map
            .iter()
            .all(|(key, value)| wanted.get(key).is_none_or(|schema| is_valid(schema, value))),
        "patternProperties" => wanted.as_object().unwrap().iter().all(|(pattern, schema)| {
            map.iter().all(|(key, value)| !matches(pattern, key) || is_valid(schema, value))
        }),
        "additionalProperties" => {
            map.iter().all(|(key, value)| is_listed(key) || is_valid(wanted, value))
        }
        _ => true,
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("the type {kind}"),
    }
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

fn is_of_format(format: &str, string: &str) -> bool {
    match format {
        "date" => is_date(string),
        "time" => is_time(string),
        "date-time" => {
            string.split_once('T').is_some_and(|(date, time)| is_date(date) && is_time(time))
        }
        "ipv4" => string.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => string.parse::<Ipv6Addr>().is_ok(),
        "uuid" => matches("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", string),
        "email" => string.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && name.len() <= 64 && host.contains('.') && is_host(host)
        }),
        "hostname" => is_host(string),
        _ => panic!("the format {format}"),
    }
}

fn is_date(date: &str) -> bool {
    let parts: Vec<u32> = date.split('-').filter_map(|part| part.parse().ok()).collect();
    let [year, month, day] = parts[..] else { return false };
    let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => 31,
    };
    date.len() == 10 && (1..=12).contains(&month) && (1..=days).contains(&day)
}

fn is_time(time: &str) -> bool {
    let hour = "([01][0-9]|2[0-3])";
    let pattern = format!(r"^{hour}:[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]{hour}:[0-5][0-9])$");
    matches(&pattern, time)
}

fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        matches("^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$", label) && label.len() <= 63
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

fn matches(pattern: &str, string: &str) -> bool {
    Regex::new(pattern).expect(pattern).is_match(string)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}
