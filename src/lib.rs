//! Ternary language models on WebGPU and on the CPU, in a browser and natively.
//!
//! The modules are in the order of dependency: each names only those above it.
//!
//! ```text
//! error  source  transfer                       bytes, and how to get them
//!   ↓
//! gguf  ternary  blocks  contents               what is in a file
//! model  tokenizer
//! chat  sampling
//!   ↓
//! compute                                       what a session asks of its engine
//!   ↓
//! host                                          a model on the CPU, for a session
//! reference                                     the model in plain Rust
//! cpu                                           the model on the CPU
//!   ↓
//! gpu  kernels  engine                          the model on the GPU
//!   ↓
//! session                                       prompt in, text out
//! perplexity                                    how well a model predicts a text
//!   ↓
//! native | web                                  files | JavaScript
//! ```
//!
//! Where to start reading: [`mod@reference`] is the whole model in plain Rust, [`engine`] the same
//! model on the GPU, and [`cpu`] on the CPU. [`kernels`] holds the engine's kernels, each with its shader. [`session`]
//! turns tokens into conversations.

// To wait in memory that threads share. Only the modules with threads have such memory.
#![cfg_attr(target_feature = "atomics", feature(stdarch_wasm_atomic_wait))]

pub mod error;
pub mod source;
pub mod transfer;

pub mod gguf;
pub mod ternary;
pub mod blocks;
pub mod contents;
pub mod model;
pub mod tokenizer;
pub mod chat;
pub mod sampling;

pub mod compute;
pub mod host;
pub mod reference;
#[cfg(feature = "cpu")]
pub mod cpu;

#[cfg(feature = "webgpu")]
pub mod gpu;
#[cfg(feature = "webgpu")]
pub mod kernels;
#[cfg(feature = "webgpu")]
pub mod engine;
pub mod session;
pub mod perplexity;

#[cfg(all(not(target_arch = "wasm32"), feature = "webgpu", feature = "cpu"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
mod web;

pub use error::{Error, Result};
