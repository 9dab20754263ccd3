//! What a BitNet model is: its sizes, and the tensors it needs.

mod config;
pub mod weights;

pub use config::{Architecture, Config};
pub use weights::{Role, Weight};
