//! Every way in which this crate can fail, with what a caller needs to act on it.

use std::fmt;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The attempt that failed with an [`Error::Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoAction {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

impl fmt::Display for IoAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// A failure. [`Error::code`] is stable; the message is for people.
///
/// There is no error for cancelling: in Rust, dropping the future cancels the operation.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The browser has no WebGPU at all.
    #[error(
        "this browser has no WebGPU ({0}); use a current Chrome, Edge, Safari or Firefox over https"
    )]
    NoWebGpu(String),
    /// There is WebGPU (or Vulkan, Metal, D3D12), but no adapter for it.
    #[error("no GPU adapter: {0}")]
    NoAdapter(String),
    /// The GPU or the CPU lacks something that was asked for: a sentence.
    #[error("{0}")]
    MissingFeature(String),
    /// The GPU device was lost.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),
    /// An allocation on the GPU failed.
    #[error(
        "out of GPU memory: {needed} bytes needed for {what}, {granted} granted; a smaller `context` needs less"
    )]
    OutOfMemory {
        /// The purpose of the memory.
        what: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes the adapter allows or had left.
        granted: u64,
    },
    /// The bytes are not a GGUF file, or a damaged one.
    #[error("not a valid GGUF file: {0}")]
    BadGguf(String),
    /// A valid GGUF file, but of a model that this crate does not run.
    #[error("unsupported model: {0}")]
    UnsupportedModel(String),
    /// The file lacks a tensor that the model needs.
    #[error("the file has no tensor `{name}`, which this model needs")]
    MissingTensor {
        /// The GGUF name.
        name: String,
    },
    /// A tensor has another shape or type than the model needs.
    #[error("tensor `{name}` is {found}, the model needs {expected}")]
    TensorShape {
        /// The GGUF name.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape the model needs.
        expected: String,
    },
    /// An adapter that cannot be applied to the model: a sentence says why.
    #[error("the adapter cannot be applied to this model: {0}")]
    BadAdapter(String),
    /// The chat template is no Jinja that can run, or needs more than a template may.
    #[error("the chat template cannot be used: {0}; `template: 'builtin'` or your own may help")]
    BadTemplate(String),
    /// The server answered, but not with the file.
    #[error("HTTP {status} for {url}")]
    Http {
        /// The status code.
        status: u16,
        /// The address that was asked for.
        url: String,
    },
    /// The network brought no bytes: no connection, or one that broke.
    #[error("could not read {what}: {why}")]
    Network {
        /// The address.
        what: String,
        /// The reason, as the platform gives it.
        why: String,
    },
    /// A file, a blob, an array or a stream could not be read, or a file could not be written.
    #[error("could not {action} {what}: {why}")]
    Io {
        /// Whether it was to be read or written.
        action: IoAction,
        /// The file's path, or a name for the blob, array or stream.
        what: String,
        /// The reason, as the platform gives it.
        why: String,
    },
    /// The file does not have the hash that the caller gave.
    #[error("integrity check failed: expected {expected}, found {found}")]
    Integrity {
        /// The hash asked for.
        expected: String,
        /// The hash of the bytes.
        found: String,
    },
    /// The caller allowed only the stored copy (`cache: 'only'`), and there is none.
    #[error("{url} is not stored on this device; load it once with the network on")]
    NotCached {
        /// The address that was asked for.
        url: String,
    },
    /// The browser's storage failed, or the page may not use it.
    #[error("the browser's storage failed: {0}")]
    Storage(String),
    /// The model does not fit into the browser's storage.
    #[error("the browser's storage is full: {0}")]
    StorageFull(String),
    /// A call that needs a model which answers.
    #[error(
        "`{name}` is an embedding model, which does not answer; `embed` gives the vectors of texts"
    )]
    EmbeddingModel {
        /// The model's name.
        name: String,
    },
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
    /// A text to embed has more tokens than the context holds.
    #[error(
        "texts[{text}] has at least {tokens} tokens, the context holds {context}; shorten it, load with a \
         larger `context`, or cut it with `truncate`"
    )]
    TextTooLong {
        /// The number of the text.
        text: usize,
        /// Tokens that it has at least.
        tokens: usize,
        /// Tokens the context holds.
        context: usize,
    },
    /// An option or an argument has a value that is not allowed.
    #[error("bad option `{name}`: {why}")]
    BadOption {
        /// The option's name.
        name: String,
        /// The reason why it is not allowed.
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
    /// An [`Error::Io`]: `what` could not be read.
    pub fn unreadable(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::Io { action: IoAction::Read, what: what.into(), why: why.to_string() }
    }

    /// An [`Error::Io`]: `what` could not be written.
    pub fn unwritable(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::Io { action: IoAction::Write, what: what.into(), why: why.to_string() }
    }

    /// Every code that [`Error::code`] can return. The package's `types.ts` has the same list.
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
        "bad-adapter",
        "bad-template",
        "http",
        "network",
        "io",
        "integrity",
        "not-cached",
        "storage",
        "storage-full",
        "embedding-model",
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
            Self::BadAdapter(_) => "bad-adapter",
            Self::BadTemplate(_) => "bad-template",
            Self::Http { .. } => "http",
            Self::Network { .. } => "network",
            Self::Io { .. } => "io",
            Self::Integrity { .. } => "integrity",
            Self::NotCached { .. } => "not-cached",
            Self::Storage(_) => "storage",
            Self::StorageFull(_) => "storage-full",
            Self::EmbeddingModel { .. } => "embedding-model",
            Self::ContextFull { .. } | Self::TextTooLong { .. } => "context-full",
            Self::BadOption { .. } => "bad-option",
            Self::Disposed => "disposed",
            Self::Internal(_) => "internal",
        }
    }
}
