//! What a session and that which computes say to each other. It names no GPU.

mod choice;
mod options;

pub use choice::{Choice, Choosing, NO_TOKEN};
pub use options::{EngineOptions, KvType, LmHead};

/// What is reported while a model is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Some of the file's bytes are on the GPU.
    Upload {
        /// Bytes read and uploaded.
        loaded: u64,
        /// Bytes in the file.
        total: u64,
    },
    /// All bytes are there. The GPU finishes what it was given: the kernels of a first answer are
    /// compiled and run once.
    Compile,
}

/// A text's row in a step of several texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seat {
    /// Its slot: no two texts of a step have the same.
    pub slot: usize,
    /// Where it begins in the KV cache.
    pub first: usize,
    /// Tokens of the text before the step.
    pub pos: usize,
}
