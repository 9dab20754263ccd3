//! Every way this crate can fail, with the facts a caller needs to act on it.

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure. [`Error::code`] is stable; the message is for people.
///
/// Cancelling is not a failure: in Rust a cancelled operation is a dropped future.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The browser has no WebGPU at all.
    #[error(
        "this browser has no WebGPU ({0}); use a current Chrome, Edge, Safari or Firefox over https"
    )]
    NoWebGpu(String),
    /// WebGPU (or Vulkan, Metal, D3D12) is there, but no adapter is.
    #[error("no GPU adapter: {0}")]
    NoAdapter(String),
    /// The adapter lacks something that was asked for.
    #[error("the GPU adapter lacks {0}")]
    MissingFeature(String),
    /// The GPU device was lost.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),
    /// An allocation on the GPU failed.
    #[error(
        "out of GPU memory: {needed} bytes needed for {what}, {granted} granted; a smaller `context` needs less"
    )]
    OutOfMemory {
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes the adapter allows or had left.
        granted: u64,
    },
    /// The bytes are not a GGUF file, or a damaged one.
    #[error("not a valid GGUF file: {0}")]
    BadGguf(String),
    /// A valid GGUF file of a model this crate does not run.
    #[error("unsupported model: {0}")]
    UnsupportedModel(String),
    /// The model lacks a tensor.
    #[error("the file has no tensor `{name}`, which this model needs")]
    MissingTensor {
        /// The GGUF name.
        name: String,
    },
    /// A tensor has another shape or type than the metadata says.
    #[error("tensor `{name}` is {found}, the model needs {expected}")]
    TensorShape {
        /// The GGUF name.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape the model needs.
        expected: String,
    },
    /// The server answered, but not with the file.
    #[error("HTTP {status} for {url}")]
    Http {
        /// The status code.
        status: u16,
        /// The address asked.
        url: String,
    },
    /// Bytes could not be read: no connection, a broken one, an unreadable file.
    #[error("could not read {what}: {why}")]
    Network {
        /// The address or file.
        what: String,
        /// The reason, as the platform gives it.
        why: String,
    },
    /// The bytes are not those that were promised.
    #[error("integrity check failed: expected {expected}, found {found}; nothing was kept")]
    Integrity {
        /// The hash asked for.
        expected: String,
        /// The hash of the bytes.
        found: String,
    },
    /// `cache: 'only'` and the model is not stored.
    #[error("{url} is not stored on this device; load it once with the network on")]
    NotCached {
        /// The address asked.
        url: String,
    },
    /// The browser's storage does not hold the model.
    #[error("the browser's storage is full: {0}")]
    StorageFull(String),
    /// More tokens than the context holds.
    #[error(
        "the prompt has {prompt} tokens, the context holds {context}; shorten it or load with a larger `context`"
    )]
    ContextFull {
        /// Tokens in the prompt.
        prompt: usize,
        /// Tokens the context holds.
        context: usize,
    },
    /// An option or argument that cannot be.
    #[error("bad option `{name}`: {why}")]
    BadOption {
        /// The option's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The model was disposed of.
    #[error("the model was disposed of")]
    Disposed,
    /// A bug in this crate.
    #[error("internal error (please report it): {0}")]
    Internal(String),
}

impl Error {
    /// Every code that [`Error::code`] can return, as listed in the package's `types.ts`.
    pub const CODES: &[&str] = &[
        "no-webgpu",
        "no-adapter",
        "missing-feature",
        "device-lost",
        "out-of-memory",
        "bad-gguf",
        "unsupported-model",
        "missing-tensor",
        "tensor-shape",
        "http",
        "network",
        "integrity",
        "not-cached",
        "storage-full",
        "context-full",
        "bad-option",
        "disposed",
        "internal",
    ];

    /// The stable name of this failure, the `code` of JavaScript's `BitNetError`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoWebGpu(_) => "no-webgpu",
            Self::NoAdapter(_) => "no-adapter",
            Self::MissingFeature(_) => "missing-feature",
            Self::DeviceLost(_) => "device-lost",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::BadGguf(_) => "bad-gguf",
            Self::UnsupportedModel(_) => "unsupported-model",
            Self::MissingTensor { .. } => "missing-tensor",
            Self::TensorShape { .. } => "tensor-shape",
            Self::Http { .. } => "http",
            Self::Network { .. } => "network",
            Self::Integrity { .. } => "integrity",
            Self::NotCached { .. } => "not-cached",
            Self::StorageFull(_) => "storage-full",
            Self::ContextFull { .. } => "context-full",
            Self::BadOption { .. } => "bad-option",
            Self::Disposed => "disposed",
            Self::Internal(_) => "internal",
        }
    }
}
