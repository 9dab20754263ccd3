//! Holds an answer to the format of calls once a call has begun. Until then it is free.

use std::rc::Rc;

use super::constraint::{Constraint, Constraints, Follow};
use crate::chat::CallFormat;
use crate::error::Result;
use crate::tokenizer::{TextStream, Tokenizer};

impl Constraints {
    /// The constraints of answers that may call tools: `calls` decide over what follows the
    /// beginning of a call.
    pub fn once_called(
        tokenizer: &Rc<Tokenizer>,
        format: &'static CallFormat,
        calls: Self,
    ) -> Self {
        let tokenizer = Rc::clone(tokenizer);
        Self::free_at_first(move |_| {
            Ok(Box::new(Calling {
                tokenizer: Rc::clone(&tokenizer),
                begin: format.begin,
                text: TextStream::new(),
                held: String::new(),
                calls: calls.clone(),
                call: None,
            }))
        })
    }
}

/// An answer that may call tools.
struct Calling {
    tokenizer: Rc<Tokenizer>,
    /// The text with which a call begins.
    begin: &'static str,
    text: TextStream,
    /// The end of the text so far, in which a call may begin.
    held: String,
    calls: Constraints,
    /// Decides over the calls, once one has begun.
    call: Option<Box<dyn Constraint>>,
}

impl Calling {
    /// Begins a call, of which the held text is there already. Gives false, and changes nothing, if
    /// that is no beginning of a call. [`CallReader`](crate::chat::CallReader) then reads no call
    /// either.
    fn begin(&mut self) -> Result<bool> {
        let mut call = self.calls.begin("")?;
        for id in self.tokenizer.encode_within(&self.held)? {
            match call.take(id) {
                Ok(()) => {}
                Err(error) if error.code() == "bad-option" => return Err(error),
                // If it has not refused the token but failed, it fails again.
                Err(_) => return call.follow().map(|_| false),
            }
        }
        self.held.clear();
        self.call = Some(call);
        Ok(true)
    }
}

impl Constraint for Calling {
    fn take(&mut self, id: u32) -> Result<()> {
        if let Some(call) = &mut self.call {
            return call.take(id);
        }
        self.held += &self.text.push(&self.tokenizer, id)?;
        // A control token has no text.
        if self.tokenizer.special_text(id) == Some(self.begin) {
            self.held.clear();
            return self.begin().map(drop);
        }
        while let Some((_, rest)) = self.held.split_once(self.begin) {
            // If this begins no call, another may begin in it.
            self.held = rest.into();
            // A part of a character is no beginning of a call.
            if self.text.is_whole() && self.begin()? {
                return Ok(());
            }
        }
        let keep = self.held.len().saturating_sub(self.begin.len() - 1);
        self.held = self.held.split_off(self.held.ceil_char_boundary(keep));
        Ok(())
    }

    fn follow(&mut self) -> Result<Follow> {
        self.call.as_mut().map_or(Ok(Follow::Any), |call| call.follow())
    }

    /// Before a call there is nothing to find out.
    fn fork(&self) -> Option<Box<dyn Constraint>> {
        self.call.as_ref()?.fork()
    }
}
