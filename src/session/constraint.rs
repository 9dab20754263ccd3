//! A constraint looks at each token of an answer and says which tokens may follow.

use std::fmt;
use std::rc::Rc;

use crate::error::Result;
use crate::sampling::Mask;

/// The tokens that may follow.
#[derive(Clone, Debug)]
pub enum Follow {
    /// Any token. Steps run ahead without a mask.
    Any,
    /// One of these tokens. A stop token among them ends the answer.
    OneOf(Mask),
    /// These tokens, at least one. They are put in without asking the model.
    These(Vec<u32>),
    /// No token: the answer is complete.
    Nothing,
}

/// Decides which tokens may follow in one answer. It does not see tokens of reasoning.
pub trait Constraint {
    /// Takes the next token of the answer. The model chose it among those that may follow.
    ///
    /// Errors: the error with which the call then fails.
    fn take(&mut self, id: u32) -> Result<()>;

    /// The tokens that may follow those so far. The constraint itself counts the tokens of
    /// [`Follow::These`] as taken.
    ///
    /// Errors: the error with which the call then fails.
    fn follow(&mut self) -> Result<Follow>;

    /// A copy that goes its own way. It finds out which drafted tokens may follow; without one,
    /// nothing is drafted where tokens are held to something.
    fn fork(&self) -> Option<Box<dyn Constraint>> {
        None
    }
}

/// Begins a [`Constraint`] for each answer.
#[derive(Clone)]
pub struct Constraints {
    begin: Rc<Begin>,
    /// Whether an answer begins as one without a constraint does, with reasoning if the model
    /// likes.
    is_free_at_first: bool,
}

/// Makes the constraint of an answer that begins with a text.
type Begin = dyn Fn(&str) -> Result<Box<dyn Constraint>>;

impl Constraints {
    /// `begin` makes a constraint for each answer. It gets the text with which the answer begins,
    /// which no token of the generation repeats; mostly that is empty. The first token may be for
    /// the constraint.
    pub fn new(begin: impl Fn(&str) -> Result<Box<dyn Constraint>> + 'static) -> Self {
        Self { begin: Rc::new(begin), is_free_at_first: false }
    }

    /// Like [`Constraints::new`], for constraints that allow any token at first.
    pub fn free_at_first(begin: impl Fn(&str) -> Result<Box<dyn Constraint>> + 'static) -> Self {
        Self { is_free_at_first: true, ..Self::new(begin) }
    }

    /// The constraint of an answer that begins with the text `begun`.
    ///
    /// Errors: those of the maker.
    pub(super) fn begin(&self, begun: &str) -> Result<Box<dyn Constraint>> {
        (self.begin)(begun)
    }

    pub(super) fn is_free_at_first(&self) -> bool {
        self.is_free_at_first
    }
}

impl fmt::Debug for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constraints")
    }
}
