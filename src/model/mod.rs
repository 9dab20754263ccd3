//! A BitNet model's sizes, and the tensors it needs.

mod config;
pub mod weights;

pub use config::{Architecture, Config};
pub use weights::{Role, Weight};
