//! Grammars for the answers of language models: which tokens may follow those so far.
//!
//! A [`Vocabulary`] is made once for each model, a [`Grammar`] once for each [`Format`], and a
//! [`Matcher`] for each answer. llguidance does the work. This crate checks what goes into it, keeps
//! it within limits of time and memory, and says in which part of a schema an error is.
//!
//! It knows nothing of models, so it is a crate of its own: natively the command line depends on it,
//! and pages get it as a module of its own, when they need one.

mod calls;
mod error;
mod format;
mod grammar;
mod limits;
#[cfg(target_arch = "wasm32")]
mod module;
mod pattern;
mod schema;
mod vocabulary;

pub use error::Error;
pub use format::Format;
pub use grammar::{Follow, Grammar, Matcher};
pub use schema::check;
pub use vocabulary::{Spelling, Vocabulary};
