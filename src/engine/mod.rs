//! The model on the GPU: the same steps as [`crate::reference`], recorded once and replayed.
//!
//! The [`Config`] and the `Weights` stay the same while the model runs. The `State` changes.

mod adapters;
mod bandwidth;
mod block;
mod choices;
mod compute;
mod dot;
mod fit;
mod forward;
mod head;
mod kv_cache;
mod lm_head;
mod load;
mod matrix_units;
mod on_gpu;
mod pass;
mod plans;
mod residency;
mod stages;
mod state;
mod tap;
mod trial;
mod upload;
mod weights;

pub use crate::gpu::MAX_BATCH_STEPS;
pub use choices::{Choices, Chosen, Sampled};
pub use on_gpu::Engine;
pub use pass::Scored;
pub use trial::tested;
pub use upload::UPLOAD;
