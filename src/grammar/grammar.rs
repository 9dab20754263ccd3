//! A grammar, and where an answer is in it.

use std::marker::PhantomData;
use std::rc::Rc;

use llguidance::Matcher as Inner;

use crate::error::Error;
use crate::format::Format;
use crate::vocabulary::Vocabulary;

/// The tokens that may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// One of the tokens whose bits are set: the lowest bit of the first word is token 0. A token
    /// that ends an answer is among them if the answer may end here.
    OneOf(Vec<u32>),
    /// These tokens, at least one. They count as taken.
    These(Vec<u32>),
    /// No token: the answer is complete.
    Nothing,
}

/// A grammar for the tokens of a vocabulary. It begins a [`Matcher`] for each answer.
pub struct Grammar {
    vocabulary: Rc<Vocabulary>,
    fresh: Inner,
}

impl Grammar {
    /// The grammar of a format.
    ///
    /// Errors: [`Error::Schema`], [`Error::Tool`], [`Error::Regex`], [`Error::Lark`].
    pub fn new(vocabulary: &Rc<Vocabulary>, format: &Format) -> Result<Self, Error> {
        let readable = format.readable(|name| vocabulary.is_special(name))?;
        let parser = vocabulary.factory.create_parser(readable.grammar.clone());
        let fresh = Inner::new(parser);
        match fresh.get_error() {
            Some(said) => Err(readable.blamed(&vocabulary.factory, &said)),
            None => Ok(Self { vocabulary: vocabulary.clone(), fresh }),
        }
    }

    /// The matcher of an answer that has no token yet.
    pub fn matcher(&self) -> Matcher {
        Matcher {
            vocabulary: self.vocabulary.clone(),
            inner: self.fresh.deep_clone(),
            n_taken: 0,
            thread: PhantomData,
        }
    }

    /// The matcher of an answer that begins with the text `begun`. That text cannot be taken back.
    ///
    /// Errors: [`Error::Begun`] if no answer begins so, [`Error::TooComplex`].
    pub fn matcher_after(&self, begun: &str) -> Result<Matcher, Error> {
        let mut matcher = self.matcher();
        if !begun.is_empty() {
            matcher.begin(begun)?;
        }
        Ok(matcher)
    }
}

/// Follows one answer, token by token. A clone goes its own way.
pub struct Matcher {
    vocabulary: Rc<Vocabulary>,
    inner: Inner,
    n_taken: usize,
    thread: PhantomData<Rc<()>>,
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        Self {
            vocabulary: self.vocabulary.clone(),
            inner: self.inner.deep_clone(),
            n_taken: self.n_taken,
            thread: PhantomData,
        }
    }
}

impl Matcher {
    /// The tokens that may follow those that were taken.
    ///
    /// Errors: [`Error::TooComplex`]. After an error the matcher cannot go on.
    pub fn follow(&mut self) -> Result<Follow, Error> {
        if self.inner.is_stopped() && !self.inner.is_error() {
            return Ok(Follow::Nothing);
        }
        let forced = self.inner.compute_ff_tokens();
        if !forced.is_empty() {
            self.consume(&forced)?;
            return Ok(Follow::These(forced));
        }
        match self.inner.compute_mask() {
            Ok(mask) => {
                let mut words = mask.as_slice().to_vec();
                words.resize(self.vocabulary.n_words(), 0);
                Ok(Follow::OneOf(words))
            }
            Err(error) => Err(too_complex(&error)),
        }
    }

    /// Takes the next token of the answer.
    ///
    /// Errors: [`Error::Token`] if it may not follow, [`Error::TooComplex`].
    pub fn take(&mut self, id: u32) -> Result<(), Error> {
        if self.vocabulary.stop.contains(&id) {
            // A Lark grammar may name such a token elsewhere too.
            return match self.may_end() || self.names(id)? {
                true => self.consume(&[id]),
                false => Err(Error::Token(id)),
            };
        }
        // A token without bytes would change nothing, again and again.
        if self.vocabulary.is_empty(id) {
            return Err(Error::Token(id));
        }
        // A matcher cannot go on after a token that may not follow.
        match self.n_fitting(&[id])? {
            1 => self.consume(&[id]),
            _ => Err(Error::Token(id)),
        }
    }

    /// Whether the grammar has this token here, although it is no text.
    fn names(&mut self, id: u32) -> Result<bool, Error> {
        let mask = self.inner.compute_mask().map_err(|error| too_complex(&error))?;
        Ok(mask.is_allowed(id))
    }

    /// Takes back the last `n` tokens.
    ///
    /// Errors: [`Error::Internal`] if there are fewer.
    pub fn rollback(&mut self, n: usize) -> Result<(), Error> {
        if n > self.n_taken {
            return Err(Error::Internal(format!("{n} of {} tokens to take back", self.n_taken)));
        }
        self.inner.rollback(n).map_err(|error| Error::Internal(error.to_string()))?;
        self.n_taken -= n;
        Ok(())
    }

    /// Whether the answer may end here.
    pub fn may_end(&mut self) -> bool {
        self.inner.is_accepting().unwrap_or(false)
    }

    /// Takes the text with which the answer begins. Where its tokens end makes no difference: the
    /// grammar looks at their bytes alone.
    fn begin(&mut self, begun: &str) -> Result<(), Error> {
        let ids = self.vocabulary.tokens(begun);
        if let Some(ids) = ids.filter(|ids| !ids.is_empty())
            && self.n_fitting(&ids)? == ids.len()
        {
            return self.inner.consume_tokens(&ids).map_err(|error| too_complex(&error));
        }
        // Characters show better than tokens what may not follow.
        let (mut ids, mut ends) = (Vec::new(), Vec::new());
        for (at, c) in begun.char_indices() {
            let Some(more) = self.vocabulary.spelled(c) else { break };
            ids.extend(more);
            ends.push((ids.len(), at + c.len_utf8()));
        }
        let n = self.n_fitting(&ids)?;
        let fitting = ends.iter().take_while(|(n_ids, _)| *n_ids <= n).last();
        let (taken, rest) = begun.split_at(fitting.map_or(0, |(_, end)| *end));
        Err(Error::Begun { taken: taken.into(), rest: rest.into() })
    }

    /// How many of the tokens may follow one another.
    fn n_fitting(&mut self, ids: &[u32]) -> Result<usize, Error> {
        self.inner.validate_tokens(ids).map_err(|error| too_complex(&error))
    }

    fn consume(&mut self, ids: &[u32]) -> Result<(), Error> {
        self.inner.consume_tokens(ids).map_err(|error| too_complex(&error))?;
        self.n_taken += ids.len();
        Ok(())
    }
}

fn too_complex(error: &impl ToString) -> Error {
    let said = error.to_string();
    Error::TooComplex(match said.lines().next() {
        Some("NoExtensionBias") => "no token may follow".into(),
        said => said.unwrap_or_default().chars().take(300).collect(),
    })
}
