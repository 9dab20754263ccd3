//! Tests of the whole model whose result may depend on the driver: they compare bits, or logits, not
//! tokens. These tests run on each driver; those of `tests/session` run once.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/embeddings.rs"]
mod embeddings;
#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod deterministic;
mod drafts;
mod embed;
mod families;
mod lanes;
mod masks;
mod streamed;
mod taps;
