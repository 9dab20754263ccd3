//! What a session does around the model: caches, conversations, limits, refusals. No driver changes
//! that, so these tests run on one; `tests/engine` has those that run on each.
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
mod soak;
