//! Questions about a text, and the words in which a model is asked.

use std::collections::HashSet;
use std::fmt::Write;

use crate::error::{Error, Result};

/// A question about a text, with the options among which a model decides.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The question.
    pub question: String,
    /// The kind of decision.
    pub kind: QuestionKind,
    /// The options. A score may have none: then they are 1 to 5.
    pub options: Vec<Label>,
}

/// The kind of a question's decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuestionKind {
    /// Yes or no.
    #[default]
    Boolean,
    /// One of several options.
    Choice,
    /// A number. All labels are numbers.
    Score,
}

/// An option of a question.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// The answer that stands for it, whole.
    pub label: String,
    /// More about it, for the model.
    pub description: Option<String>,
}

impl Question {
    /// Refuses a question that cannot be asked. `path` is put before the names of its fields, such
    /// as `questions[1].`.
    ///
    /// Errors: `bad-option`.
    pub fn check(&self, path: &str) -> Result<()> {
        let bad = |name: &str, why: &str| {
            Err(Error::BadOption { name: format!("{path}{name}"), why: why.into() })
        };
        if self.question.trim().is_empty() {
            return bad("question", "must not be empty");
        }
        match (self.kind, self.options.len()) {
            (QuestionKind::Boolean, 1..) => {
                return bad("options", "must be absent: those of a boolean are yes and no");
            }
            (QuestionKind::Choice, 0 | 1) | (QuestionKind::Score, 1) => {
                return bad("options", "must be two or more");
            }
            _ => {}
        }
        let mut labels = HashSet::new();
        for (n, Label { label, .. }) in self.options.iter().enumerate() {
            let name = format!("options[{n}]");
            if label.trim().is_empty() {
                return bad(&name, "must have a label");
            }
            if !labels.insert(label) {
                return bad(&name, "must not have the label of another");
            }
            if self.kind == QuestionKind::Score && value(label).is_none() {
                return bad(
                    &name,
                    "must have a number as its label, as it is an option of a score",
                );
            }
        }
        Ok(())
    }

    /// The options, also those that need not be given.
    pub(super) fn labels(&self) -> Vec<Label> {
        let named = |label: &str| Label { label: label.into(), description: None };
        match self.kind {
            QuestionKind::Boolean => ["yes", "no"].map(named).into(),
            QuestionKind::Score if self.options.is_empty() => {
                ["1", "2", "3", "4", "5"].map(named).into()
            }
            _ => self.options.clone(),
        }
    }

    /// The question about `text` in the words that the model reads. The text comes first, so that
    /// all questions about it begin alike.
    pub(super) fn message(&self, text: &str, context: Option<&str>) -> String {
        let mut message = String::new();
        if let Some(context) = context {
            message += context;
            message += "\n\n";
        }
        let question = &self.question;
        // Writing to a string cannot fail.
        let _ = write!(message, "Text:\n{text}\n\nQuestion: {question}\n");
        message += "Answer with one of these options and nothing else:";
        for Label { label, description } in self.labels() {
            let _ = write!(message, "\n- {label}");
            if let Some(description) = description {
                let _ = write!(message, ": {description}");
            }
        }
        message
    }
}

/// The number that a label of a score stands for.
pub(super) fn value(label: &str) -> Option<f64> {
    label.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
