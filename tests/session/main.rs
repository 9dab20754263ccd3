//! Tests that do not depend on the driver, so that they run on one: what a session adds to the
//! model (caches, conversations, limits, refusals), the graph of every family, and the texts of
//! every way to run a model. The tests of `tests/engine` run on each driver.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/embeddings.rs"]
mod embeddings;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/valid.rs"]
mod valid;

mod adapters;
mod ahead;
mod answers;
mod bundled;
mod batch;
mod cache;
mod choices;
mod chunks;
mod compiling;
mod constraint;
mod conversation;
mod converted;
mod decide;
mod embed;
mod families;
mod format;
mod formats;
mod generate;
mod goldens;
mod hostile;
mod inspect;
mod lm_head;
mod logits;
mod lookup;
mod lost;
mod passes;
mod profile;
mod refusals;
mod room;
mod sampled;
mod saved;
mod sentencepiece;
mod soak;
mod strict;
mod thinking;
mod tools;
