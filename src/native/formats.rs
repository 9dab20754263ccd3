//! Answers that keep to a format, such as a JSON schema.

use std::rc::Rc;

use tritloom_grammar as grammar;
use tritloom_grammar::{Grammar, Matcher, Vocabulary};

use crate::chat::{CallFormat, ToolChoice, Tools};
use crate::error::{Error, Result};
use crate::sampling::Mask;
use crate::session::{Constraint, Constraints, Follow};
use crate::tokenizer::Tokenizer;

pub use tritloom_grammar::Format;

/// Makes the constraints of answers of one model.
pub struct Formats {
    tokenizer: Rc<Tokenizer>,
    vocabulary: Rc<Vocabulary>,
    n_vocab: usize,
}

impl Formats {
    /// Reads the tokens of a model, which takes about a second for 128 thousand.
    ///
    /// Errors: `unsupported-model`.
    pub fn new(tokenizer: &Rc<Tokenizer>) -> Result<Self> {
        let n_vocab = tokenizer.n_vocab();
        let encoder = Rc::clone(tokenizer);
        // A text that cannot be encoded is spelled by other tokens.
        let encode = move |text: &str| encoder.encode_within(text).unwrap_or_default();
        let vocabulary = Vocabulary::unpacked(&tokenizer.packed(), encode)
            .map_err(|error| converted("format", &error))?;
        Ok(Self { tokenizer: Rc::clone(tokenizer), vocabulary: Rc::new(vocabulary), n_vocab })
    }

    /// Prepares a format. `name` is the option that gave it.
    ///
    /// Errors: `bad-option` with that name.
    pub fn format(&self, name: &str, format: &Format) -> Result<Formatted> {
        let grammar = Grammar::new(&self.vocabulary, format);
        let grammar = grammar.map_err(|error| converted(name, &error))?;
        Ok(Formatted { name: name.into(), n_vocab: self.n_vocab, grammar: Rc::new(grammar) })
    }

    /// The constraints of answers that may call `tools`, or have to as `choice` says. `parallel`
    /// says whether several calls may follow one another.
    ///
    /// Errors: `bad-option` (`tools`, `toolChoice`).
    pub fn calls(
        &self,
        format: &'static CallFormat,
        tools: &Tools,
        choice: &ToolChoice,
        parallel: bool,
    ) -> Result<Constraints> {
        let text = tools.grammar(format, choice, parallel)?;
        let held = self.format("tools", &Format::Calls(text))?.constraints();
        Ok(match choice {
            ToolChoice::Auto => Constraints::once_called(&self.tokenizer, format, held),
            _ => held,
        })
    }
}

/// A format that answers can be held to.
#[derive(Clone)]
pub struct Formatted {
    name: Rc<str>,
    n_vocab: usize,
    grammar: Rc<Grammar>,
}

impl Formatted {
    /// The constraints of answers in this format.
    pub fn constraints(&self) -> Constraints {
        let formatted = self.clone();
        Constraints::new(move |begun| {
            let matcher = formatted.grammar.matcher_after(begun);
            let matcher = matcher.map_err(|error| converted("prefix", &error))?;
            Ok(Box::new(Held { formatted: formatted.clone(), matcher }))
        })
    }

    /// Whether an answer of these tokens is complete.
    pub fn is_complete(&self, ids: &[u32]) -> bool {
        let mut matcher = self.grammar.matcher();
        ids.iter().all(|&id| matcher.take(id).is_ok()) && matcher.may_end()
    }
}

/// An answer that is held to its format.
#[derive(Clone)]
struct Held {
    formatted: Formatted,
    matcher: Matcher,
}

impl Held {
    fn converted(&self, error: &grammar::Error) -> Error {
        converted(&self.formatted.name, error)
    }
}

impl Constraint for Held {
    fn take(&mut self, id: u32) -> Result<()> {
        self.matcher.take(id).map_err(|error| self.converted(&error))
    }

    fn follow(&mut self) -> Result<Follow> {
        Ok(match self.matcher.follow().map_err(|error| self.converted(&error))? {
            grammar::Follow::OneOf(words) => {
                Follow::OneOf(Mask::from_words(self.formatted.n_vocab, &words))
            }
            grammar::Follow::These(ids) => Follow::These(ids),
            grammar::Follow::Nothing => Follow::Nothing,
        })
    }

    fn fork(&self) -> Option<Box<dyn Constraint>> {
        Some(Box::new(self.clone()))
    }
}

/// An error of a grammar that the option `name` gave.
fn converted(name: &str, error: &grammar::Error) -> Error {
    let why = error.to_string();
    match error.code() {
        "bad-option" => Error::BadOption { name: name.into(), why },
        "unsupported-model" => Error::UnsupportedModel(why),
        _ => Error::Internal(why),
    }
}
