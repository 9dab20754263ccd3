//! The formats that an answer may have.

use llguidance::ParserFactory;
use llguidance::api::TopLevelGrammar;

use crate::calls::Calls;
use crate::error::Error;
use crate::pattern::translated;
use crate::schema::{Checked, any_object, checked};

/// Bytes of a Lark grammar at most.
const MAX_LARK_BYTES: usize = 1 << 16;

/// Rules and brackets of a Lark grammar at most. llguidance reads rules within rules by functions
/// that call themselves.
const MAX_LARK_PARTS: usize = 400;

/// Operators of regular expressions that are not supported. To find out whether a text has all of several
/// patterns, or not one of them, llguidance may take minutes.
const OPERATORS: [char; 2] = ['&', '~'];

/// The format of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON that is valid by this JSON schema, without white space between its parts.
    JsonSchema(String),
    /// Any JSON object, without white space between its parts.
    JsonObject,
    /// A text that this regular expression matches as a whole. The syntax is JavaScript's, without
    /// lookahead, lookbehind and back references.
    Regex(String),
    /// A text of this grammar, in llguidance's variant of Lark.
    Lark(String),
    /// Calls of tools, as a JSON object with these fields describes them:
    ///
    /// - `begin`, `open`, `close`, `end`: a call is `begin`, `open`, `{"name": "…", "arguments":
    ///   …}`, `close` and `end`. `begin` and `end` are special tokens if the vocabulary has them.
    /// - `tools`: objects with the `name` of a tool, the JSON schema of its `parameters`, and its
    ///   `index` for errors.
    /// - `begun`: whether the first `begin` is there already.
    /// - `many`: whether further calls may follow, each after `between`.
    Calls(String),
}

/// A format that has been checked.
pub(crate) struct Readable {
    pub(crate) grammar: TopLevelGrammar,
    kind: Kind,
}

enum Kind {
    Schema(Checked),
    Calls(Calls),
    Regex,
    Lark,
    JsonObject,
}

impl Format {
    /// Checks a format for a vocabulary whose special tokens are those of `is_special`.
    pub(crate) fn readable(&self, is_special: impl Fn(&str) -> bool) -> Result<Readable, Error> {
        Ok(match self {
            Self::JsonSchema(schema) => {
                let checked = checked(schema)?;
                let grammar = TopLevelGrammar::from_json_schema(checked.plain.clone());
                Readable { grammar, kind: Kind::Schema(checked) }
            }
            Self::Calls(text) => {
                let calls = Calls::read(text)?;
                Readable { grammar: calls.grammar(is_special), kind: Kind::Calls(calls) }
            }
            Self::JsonObject => Readable {
                grammar: TopLevelGrammar::from_json_schema(any_object()),
                kind: Kind::JsonObject,
            },
            Self::Regex(pattern) => {
                let pattern = translated(pattern).map_err(Error::Regex)?;
                Readable { grammar: TopLevelGrammar::from_regex(&pattern), kind: Kind::Regex }
            }
            Self::Lark(grammar) => {
                check_lark(grammar).map_err(Error::Lark)?;
                // A grammar such as `/y+/ /y+/` forces one letter for ever, and llguidance would look
                // for its end.
                let unforced = format!("{grammar}\n%llguidance {{\"no_forcing\": true}}\n");
                let grammar = TopLevelGrammar::from_lark(unforced);
                Readable { grammar, kind: Kind::Lark }
            }
        })
    }
}

impl Readable {
    /// The error when llguidance has `said` this of the grammar. `factory` has made it.
    pub(crate) fn blamed(&self, factory: &ParserFactory, said: &str) -> Error {
        let short: String = said.trim_end_matches("\n<non-verbose/>").chars().take(300).collect();
        match &self.kind {
            Kind::Schema(checked) => checked.blamed(said),
            Kind::Calls(calls) => calls.blamed(factory, said),
            Kind::Regex => Error::Regex(format!("is not supported: {short}")),
            Kind::Lark => Error::Lark(format!("is wrong: {short}")),
            Kind::JsonObject => Error::Internal(short),
        }
    }
}

fn check_lark(grammar: &str) -> Result<(), String> {
    if grammar.len() > MAX_LARK_BYTES {
        return Err(format!("has {} bytes, more than {MAX_LARK_BYTES}", grammar.len()));
    }
    if grammar.bytes().filter(|byte| b":([{".contains(byte)).count() > MAX_LARK_PARTS {
        return Err(format!("has more than {MAX_LARK_PARTS} colons and opening brackets"));
    }
    // Its schemas would not be checked.
    if grammar.contains("%json") {
        return Err("has `%json`, which is not supported".into());
    }
    match operators(grammar).find(|operator| OPERATORS.contains(operator)) {
        Some(operator) => Err(format!("has `{operator}`, which is not supported")),
        None => Ok(()),
    }
}

/// The characters of a Lark grammar that are in no text, regular expression or comment.
fn operators(grammar: &str) -> impl Iterator<Item = char> {
    let mut rest = grammar.chars().peekable();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        match (c, rest.peek()) {
            ('#', _) | ('/', Some('/')) => while rest.next_if(|&c| c != '\n').is_some() {},
            ('"' | '/', _) => {
                while let Some(inner) = rest.next() {
                    match inner {
                        '\\' => drop(rest.next()),
                        inner if inner == c => break,
                        _ => {}
                    }
                }
            }
            _ => return Some(c),
        }
        Some(' ')
    })
}
