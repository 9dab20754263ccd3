//! Finds the part of a schema for which llguidance refuses the whole.

use std::collections::HashSet;

use llguidance::api::ParserLimits;
use llguidance::{GrammarBuilder, Instant, JsonCompileOptions};
use serde_json::Value;

use super::at::At;
use super::references::target;
use super::walk::plain;
use super::with_options;
use crate::error::Error;
use crate::limits::{limits, without_panics};

/// How long to look, in milliseconds.
const MAX_TIME: u128 = 300;

/// The beginning of llguidance's message for a schema that no value can meet.
const UNSATISFIABLE: &str = "Unsatisfiable schema: ";

/// The error when llguidance has `said` this of the schema `root`.
pub(super) fn blamed(root: &Value, said: &str) -> Error {
    let mut search = Search { root, seen: HashSet::new(), started: Instant::now() };
    let (pointer, said) = search.deepest(String::new(), root, said.into());
    Error::Schema { pointer, why: reason(&said) }
}

struct Search<'a> {
    root: &'a Value,
    /// References that were followed.
    seen: HashSet<String>,
    started: Instant,
}

impl<'a> Search<'a> {
    /// The deepest part of `schema` that is refused in the same way, and the reason.
    fn deepest(&mut self, pointer: String, schema: &'a Value, said: String) -> (String, String) {
        for (pointer, part) in self.parts(&pointer, schema) {
            if self.started.elapsed().as_millis() > MAX_TIME {
                break;
            }
            if let Some(of_part) = self.said_of(&pointer, part)
                && of_part.contains(UNSATISFIABLE) == said.contains(UNSATISFIABLE)
            {
                return self.deepest(pointer, part, of_part);
            }
        }
        (pointer, said)
    }

    /// The reason why llguidance refuses a part by itself; `None` if it does not.
    fn said_of(&self, pointer: &str, schema: &Value) -> Option<String> {
        let plain = plain(self.root, schema, &At::Pointed(pointer)).ok()?;
        said_of(with_options(plain))
    }

    /// The schemas within a schema, and the one to which it refers.
    fn parts(&mut self, pointer: &str, schema: &'a Value) -> Vec<(String, &'a Value)> {
        let mut parts = Vec::new();
        let above = At::Pointed(pointer);
        for (key, value) in schema.as_object().into_iter().flatten() {
            let at = above.key(key);
            match (&**key, value) {
                ("properties" | "patternProperties", Value::Object(all)) => {
                    parts.extend(all.iter().map(|(key, part)| (at.key(key).to_string(), part)));
                }
                ("prefixItems" | "items" | "allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    let all = all.iter().enumerate();
                    parts.extend(all.map(|(n, part)| (at.index(n).to_string(), part)));
                }
                ("items" | "additionalItems" | "additionalProperties", part) => {
                    parts.push((at.to_string(), part));
                }
                ("$ref", Value::String(reference)) => {
                    if let Ok(Some((pointer, part))) = target(self.root, reference)
                        && self.seen.insert(pointer.clone())
                    {
                        parts.push((pointer, part));
                    }
                }
                _ => {}
            }
        }
        parts.retain(|(_, part)| part.is_object());
        parts
    }
}

/// The reason why llguidance refuses a plain schema; `None` if it does not.
fn said_of(plain: Value) -> Option<String> {
    let limits: ParserLimits = limits();
    let builder = GrammarBuilder::new(None, limits);
    without_panics(|| {
        JsonCompileOptions::default()
            .json_to_llg_with_overrides(builder, plain)
            .map(drop)
            .map_err(|error| format!("{error:#}"))
    })
    .err()
}

/// The reason in our words. It goes on after the name of the part.
fn reason(said: &str) -> String {
    // llguidance writes regular expressions as trees there.
    const EMPTY: &str = "Regex is empty";
    const UNKNOWN: &str = "Unable to determine if regex is empty";
    let short = |text: &str| -> String {
        text.lines().next().unwrap_or_default().chars().take(300).collect()
    };
    match said.rsplit_once(UNSATISFIABLE) {
        Some((_, why)) if why.starts_with(EMPTY) => {
            "cannot be met: no string has this pattern, format and length".into()
        }
        None if said.contains(UNKNOWN) => {
            "is not supported: its pattern, format and length are too complex together".into()
        }
        Some((_, why)) => format!("cannot be met: {}", short(why)),
        None => format!("is not supported: {}", short(said)),
    }
}
