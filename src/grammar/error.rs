//! Every way in which a grammar can be refused or an answer can leave it.

use std::fmt;

/// Characters that a message shows of a text at most.
const MAX_SHOWN: usize = 40;

/// A failure. [`Error::code`] is stable; the message is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A JSON schema asks for something that is not supported, or that no value is.
    Schema {
        /// The JSON pointer of the part of the schema that is at fault; empty for the whole.
        pointer: String,
        /// The reason.
        why: String,
    },
    /// The parameters of a tool ask for something that is not supported, or that no value is.
    Tool {
        /// The index of the tool.
        index: u64,
        /// The JSON pointer within the schema of its parameters; empty for the whole.
        pointer: String,
        /// The reason.
        why: String,
    },
    /// A regular expression is wrong or not supported.
    Regex(String),
    /// A Lark grammar is wrong or not supported.
    Lark(String),
    /// The grammar needs more time or memory than an answer may take.
    TooComplex(String),
    /// No text of the grammar begins like this.
    Begun {
        /// The beginning of it that may be.
        taken: String,
        /// The rest, whose beginning may not follow.
        rest: String,
    },
    /// A token that may not follow.
    Token(u32),
    /// Tokens that no vocabulary can be made of.
    Vocabulary(String),
    /// A bug in this crate.
    Internal(String),
}

impl Error {
    /// The stable name of this failure. Those of the option that gave the grammar, or the beginning
    /// of the answer, are `bad-option`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Schema { .. }
            | Self::Tool { .. }
            | Self::Regex(_)
            | Self::Lark(_)
            | Self::TooComplex(_)
            | Self::Begun { .. } => "bad-option",
            Self::Vocabulary(_) => "unsupported-model",
            Self::Token(_) | Self::Internal(_) => "internal",
        }
    }

    /// The JSON pointer of the part of the schema that is at fault.
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Schema { pointer, .. } | Self::Tool { pointer, .. } => Some(pointer),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema { pointer, why } if pointer.is_empty() => write!(f, "the schema {why}"),
            Self::Schema { pointer, why } => write!(f, "`{pointer}` of the schema {why}"),
            Self::Tool { index, pointer, why } if pointer.is_empty() => {
                write!(f, "the parameters of tools[{index}]: the schema {why}")
            }
            Self::Tool { index, pointer, why } => {
                write!(f, "the parameters of tools[{index}]: `{pointer}` of the schema {why}")
            }
            Self::Regex(why) => write!(f, "the regular expression {why}"),
            Self::Lark(why) => write!(f, "the grammar {why}"),
            Self::TooComplex(why) => write!(f, "the grammar is too complex: {why}"),
            Self::Begun { taken, rest } => {
                let short = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
                write!(f, "no answer of this format begins so: {:?} may not follow", short(rest))?;
                let from = taken.char_indices().rev().nth(MAX_SHOWN - 1).map_or(0, |(at, _)| at);
                if taken.is_empty() { Ok(()) } else { write!(f, " {:?}", &taken[from..]) }
            }
            Self::Token(id) => write!(f, "token {id} may not follow"),
            Self::Vocabulary(why) => write!(f, "no grammar for this vocabulary: {why}"),
            Self::Internal(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
