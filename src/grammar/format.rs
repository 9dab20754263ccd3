//! The formats that an answer may have.

use llguidance::api::TopLevelGrammar;

use crate::error::Error;
use crate::pattern::translated;
use crate::schema::{Checked, any_object, checked};

/// Bytes of a Lark grammar at most.
const MAX_LARK_BYTES: usize = 1 << 18;

/// Brackets within brackets of a Lark grammar at most.
const MAX_LARK_DEPTH: usize = 100;

/// The format of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON that is valid by this JSON schema, without white space between its parts.
    JsonSchema(String),
    /// Any JSON object, without white space between its parts.
    JsonObject,
    /// A text that this regular expression matches as a whole. The syntax is JavaScript's, without
    /// what looks around and back.
    Regex(String),
    /// A text of this grammar, in llguidance's variant of Lark.
    Lark(String),
}

/// A format that has been checked.
pub(crate) struct Readable {
    pub(crate) grammar: TopLevelGrammar,
    kind: Kind,
}

enum Kind {
    Schema(Checked),
    Regex,
    Lark,
    JsonObject,
}

impl Format {
    pub(crate) fn readable(&self) -> Result<Readable, Error> {
        Ok(match self {
            Self::JsonSchema(schema) => {
                let checked = checked(schema)?;
                let grammar = TopLevelGrammar::from_json_schema(checked.plain.clone());
                Readable { grammar, kind: Kind::Schema(checked) }
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
                let grammar = TopLevelGrammar::from_lark(grammar.clone());
                Readable { grammar, kind: Kind::Lark }
            }
        })
    }
}

impl Readable {
    /// The error for what llguidance says of the grammar.
    pub(crate) fn blamed(&self, said: &str) -> Error {
        let short: String = said.trim_end_matches("\n<non-verbose/>").chars().take(300).collect();
        match &self.kind {
            Kind::Schema(checked) => checked.blamed(said),
            Kind::Regex => Error::Regex(format!("is not supported: {short}")),
            Kind::Lark => Error::Lark(format!("is wrong: {short}")),
            Kind::JsonObject => Error::Internal(short),
        }
    }
}

/// llguidance reads brackets by functions that call themselves.
fn check_lark(grammar: &str) -> Result<(), String> {
    if grammar.len() > MAX_LARK_BYTES {
        return Err(format!("has {} bytes, more than {MAX_LARK_BYTES}", grammar.len()));
    }
    let mut depth = 0_usize;
    for byte in grammar.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_LARK_DEPTH {
            return Err(format!("has more than {MAX_LARK_DEPTH} brackets within one another"));
        }
    }
    Ok(())
}
