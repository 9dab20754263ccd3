//! Where in a schema something is.

use std::fmt;

use crate::error::Error;

/// A part of a schema. Its text is a JSON pointer.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    Whole,
    /// The target of a reference, by its pointer.
    Pointed(&'a str),
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl<'a> At<'a> {
    pub(super) fn key(&'a self, key: &'a str) -> At<'a> {
        At::Key(self, key)
    }

    pub(super) fn index(&'a self, index: usize) -> At<'a> {
        At::Index(self, index)
    }

    pub(super) fn refuse<T>(&self, why: impl Into<String>) -> Result<T, Error> {
        Err(Error::Schema { pointer: self.to_string(), why: why.into() })
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Whole => Ok(()),
            At::Pointed(pointer) => f.write_str(pointer),
            At::Key(parent, key) => {
                write!(f, "{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            At::Index(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}
