//! Ternary language models on WebGPU, in a browser and natively.
//!
//! The modules are in the order of dependency: each names only those above it.
//!
//! ```text
//! error  source  transfer                       bytes, and how to get them
//!   ↓
//! gguf  ternary  blocks  model  tokenizer       what is in a file
//! chat  sampling
//!   ↓
//! compute                                       what a session asks of its engine
//!   ↓
//! reference                                     the model in plain Rust
//!   ↓
//! gpu  kernels  engine                          the model on the GPU
//!   ↓
//! session                                       prompt in, text out
//! perplexity                                    how well a model predicts a text
//!   ↓
//! native | web                                  files | JavaScript
//! ```
//!
//! Where to start reading: [`mod@reference`] is the whole model in plain Rust, and [`engine`] the same
//! model on the GPU. [`kernels`] holds the engine's kernels, each with its shader. [`session`]
//! turns tokens into conversations.

pub mod error;
pub mod source;
pub mod transfer;

pub mod gguf;
pub mod ternary;
pub mod blocks;
pub mod model;
pub mod tokenizer;
pub mod chat;
pub mod sampling;

pub mod compute;
pub mod reference;

pub mod gpu;
pub mod kernels;
pub mod engine;
pub mod session;
pub mod perplexity;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
mod web;

pub use error::{Error, Result};
