//! Random hostile files. The code that reads them ends soon, uses little memory, and returns a
//! value or an error with a code. It never panics, whatever the bytes are.
//!
//! Each target first tries the files in `tests/data/fuzz/TARGET`, then random ones for
//! `FUZZ_SECONDS` (1 by default, or less). An input that fails is made as small as possible and written to
//! `target/fuzz`. Move it to `tests/data/fuzz/TARGET`: it is tried first from then on.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and report this way")]

#[path = "../support/mod.rs"]
mod support;

mod adapter;
mod allocation;
mod blocks;
mod convert;
mod format;
mod gguf;
mod manifest;
mod metadata;
mod run;
mod safetensors;
mod template;
mod tokenizer;
mod tools;
mod volumes;
