//! What a session adds to the model: caches, conversations, limits, refusals. They do not depend on
//! the driver, so these tests run on one. The tests of `tests/engine` run on each.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod cache;
mod conversation;
mod formats;
mod generate;
mod hostile;
mod lm_head;
mod lookup;
mod profile;
mod refusals;
mod sampled;
mod sentencepiece;
mod soak;
mod thinking;
