//! BitNet b1.58 language models on WebGPU, in a browser and natively.
//!
//! The modules stand in the order of dependency: each may name only those above it.
//!
//! ```text
//! bytes            what the model is                  the model, plainly   the GPU            the model on it   use
//! error source  →  gguf ternary model tokenizer chat sampling → reference         → gpu  kernels    →  engine         →  session → native | web
//! ```
//!
//! To get to know it: [`reference`] is the whole model in plain Rust; [`engine`] is the same on
//! the GPU; [`kernels`] are its steps, each beside its shader; [`session`] turns it into text.

pub mod error;
pub mod source;
pub mod transfer;

pub mod gguf;
pub mod ternary;
pub mod model;
pub mod tokenizer;
pub mod chat;
pub mod sampling;

pub mod reference;

pub mod gpu;
pub mod kernels;
pub mod engine;
pub mod session;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
mod web;

pub use error::{Error, Result};
