//! The formats of strings.

use serde_json::{Map, Value};

use super::keywords::types;

/// Formats that llguidance has regular expressions for.
const KNOWN: [&str; 5] = ["duration", "ipv4", "ipv6", "uri", "uuid"];

/// Formats of the standard that no grammar here has.
const UNSUPPORTED: [&str; 9] = [
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
];

/// The rule of a format for a string.
pub(super) enum Format {
    /// llguidance knows it by this name. A regular expression, if there is one, holds too.
    Known(&'static str, Option<&'static str>),
    /// A regular expression.
    Pattern(String),
}

/// Addresses with something behind the scheme. Few programs read `a:`, `a:?b` and `a:#b`.
const NO_BARE_SCHEME: &str = "^[^:]+:[^?#]";

/// Days that are in the calendar: 29 February is in leap years only.
const DATE: &str = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
    |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
    |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";

/// Times without leap seconds, which few programs read.
const TIME: &str = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// Names of hosts within their limits of length, and without the hyphens that only encoded names have.
const LABEL: &str = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}";

/// The part of an address before the `@`, which may have 64 bytes.
const MAILBOX: &str =
    "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}(?:[.][A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}){0,2}";

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Pattern(format!("^{DATE}$")),
            "time" => Self::Pattern(format!("^{TIME}$")),
            "date-time" => Self::Pattern(format!("^{DATE}T{TIME}$")),
            "hostname" => Self::Pattern(format!("^{LABEL}(?:[.]{LABEL}){{0,3}}$")),
            "email" => Self::Pattern(format!("^{MAILBOX}@{LABEL}(?:[.]{LABEL}){{1,2}}$")),
            _ => {
                let known = KNOWN.iter().find(|known| **known == name)?;
                Self::Known(known, (*known == "uri").then_some(NO_BARE_SCHEME))
            }
        })
    }

    /// Whether `format` of a schema is a note: the schema has no strings, as with `int64` of OpenAPI,
    /// or the standard does not have it, and a pattern beside it says what it means. Libraries print
    /// such names: zod, for one, `cuid2` and `lowercase`.
    pub(super) fn is_note(schema: &Map<String, Value>, name: &str) -> bool {
        if types(schema.get("type")).is_some_and(|types| !types.contains(&"string")) {
            return true;
        }
        let has_pattern = |schema: &Map<String, Value>| schema.contains_key("pattern");
        let all_of = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut parts = all_of.filter_map(Value::as_object);
        !UNSUPPORTED.contains(&name) && (has_pattern(schema) || parts.any(has_pattern))
    }

    /// The names of all formats, for people.
    pub(super) fn names() -> String {
        format!("date, date-time, email, hostname, time, {}", KNOWN.join(", "))
    }
}

/// Patterns that look ahead, as libraries print them, each with a pattern that does not and allows
/// no more, and with the format that it implies.
const REWRITTEN: [(&str, &str, &str); 1] = [
    // Of `z.email()`.
    (
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
        r"^[A-Za-z0-9_+\-]{1,20}(?:\.[A-Za-z0-9_+\-]{1,20}){0,2}@(?:[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}\.){1,2}[A-Za-z]{2,20}$",
        "email",
    ),
];

/// A pattern that means no more than `pattern` and does not look ahead, with the format that it
/// implies, if there is one.
pub(super) fn rewritten(pattern: &str) -> Option<(&'static str, &'static str)> {
    let found = REWRITTEN.iter().find(|(given, ..)| *given == pattern)?;
    Some((found.1, found.2))
}
