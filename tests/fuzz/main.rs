//! Hostile files, at random: whatever the bytes, what reads them ends soon, in little memory, with a
//! value or with an error that has a code; it never panics.
//!
//! Each target goes on for `FUZZ_SECONDS` (1 unless set), after what `tests/data/fuzz` holds. An input
//! that fails is made as small as it gets and written to `target/fuzz`; it belongs into
//! `tests/data/fuzz/TARGET`, where it is tried first from then on.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

#[path = "../support/mod.rs"]
mod support;

mod allocation;
mod gguf;
mod manifest;
mod metadata;
mod run;
mod tokenizer;
