//! What looks at each token of an answer, and says what may follow it.

use std::fmt;
use std::rc::Rc;

use crate::error::Result;
use crate::sampling::Mask;

/// What may follow.
#[derive(Clone, Debug)]
pub enum Follow {
    /// Any token.
    Any,
    /// One of these tokens. A stop token among them ends the answer.
    OneOf(Mask),
    /// These tokens, one or more. They are put in without asking the model.
    These(Vec<u32>),
    /// Nothing: the answer is complete.
    Nothing,
}

/// Decides what may follow in one answer. Tokens of reasoning are none of its business.
pub trait Constraint {
    /// Takes the next token of the answer: one that the model chose, out of those that may follow.
    ///
    /// Errors: what the call then fails with.
    fn take(&mut self, id: u32) -> Result<()>;

    /// What may follow the tokens so far. It counts [`Follow::These`] as taken.
    ///
    /// Errors: what the call then fails with.
    fn follow(&mut self) -> Result<Follow>;
}

/// Begins a [`Constraint`] for each answer.
#[derive(Clone)]
pub struct Constraints(Rc<dyn Fn() -> Result<Box<dyn Constraint>>>);

impl Constraints {
    /// `begin` gives a constraint at the beginning of an answer.
    pub fn new(begin: impl Fn() -> Result<Box<dyn Constraint>> + 'static) -> Self {
        Self(Rc::new(begin))
    }

    pub(super) fn begin(&self) -> Result<Box<dyn Constraint>> {
        (self.0)()
    }
}

impl fmt::Debug for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constraints")
    }
}
