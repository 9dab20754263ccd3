//! A model's architecture and sizes, and the tensors it needs.

pub mod adapter;
mod architecture;
mod config;
mod pooling;
mod role;
mod rope;
pub mod weights;

pub use adapter::{Adapter, Adapters};
pub use architecture::{ARCHITECTURES, Activation, Architecture, RopePairs};
pub use config::Config;
pub use pooling::Pooling;
pub use role::{Kind, Role};
pub use rope::{Angles, Rope, RopeScaling};
pub use weights::Weight;
