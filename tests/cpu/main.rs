//! Tests of the whole model on the CPU. Those of the kernels are beside them, in `src/cpu`.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/embeddings.rs"]
mod embeddings;
#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod embed;
mod families;
mod goldens;
mod lm_head;
mod sessions;
