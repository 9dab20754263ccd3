//! The engine and the session on a GPU: the goldens, other programs' logits, and everything that a
//! generation may meet.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/mod.rs"]
mod support;

mod setup;

mod bundled;
mod cache;
mod chunks;
mod conversation;
mod formats;
mod generate;
mod goldens;
mod head;
mod hostile;
mod logits;
mod lookup;
mod profile;
mod refusals;
mod sampled;
mod soak;
