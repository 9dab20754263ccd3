//! Facts about a loaded model.

use serde::Serialize;

use crate::compute::{Backend, KvType};

/// Facts about a loaded model, and how it runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// `general.name`.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// The machine that computes: `webgpu` or `cpu`.
    pub backend: Backend,
    /// Tokens the KV cache holds.
    pub context_length: usize,
    /// How it holds keys and values.
    pub kv: KvType,
    /// Layers of the model.
    pub layers: usize,
    /// Heads of attention in a layer.
    pub heads: usize,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Weights in the model.
    pub parameters: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of GPU buffers; on the CPU, of weights and KV cache in memory.
    pub gpu_bytes: u64,
    /// The layers whose weights do not stay on the GPU, because it has too little memory for all: each pass
    /// uploads them again.
    pub streamed_layers: usize,
    /// Bytes of KV cache for a sequence that fills the context.
    pub cache_bytes: u64,
    /// Bytes of KV cache that are held after the load. It grows when texts need more, up to what the device gives.
    pub kv_bytes: u64,
    /// The most generations that share a step. If they use the whole context, there are only as
    /// many as have memory for `cache_bytes` each. Others wait.
    pub max_batch: usize,
    /// The adapter's name, or that of the CPU's instruction set.
    pub adapter: String,
    /// The threads that compute; `None` on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Dispatches of one greedy decode step.
    pub dispatches_per_token: usize,
    /// Bytes that a greedy decode step moves with an empty context, which are the weights that it
    /// reads. Of the rows of the LM head that are computed again, only one counts.
    pub bytes_per_token: u64,
    /// The kernel variants in use, `name` or `name/variant`.
    pub kernels: Vec<String>,
    /// Sentences for people about choices that may matter to the text: rules that are not quite
    /// those of the file, or factors that depend on the context.
    pub notes: Vec<String>,
    /// The chat template: `file`, `builtin: NAME` or `given`; `None` if there is none.
    pub template: Option<String>,
    /// Whether the model was made to embed texts. It then does not answer.
    pub embeds: bool,
    /// How a text's vector is made of its tokens': as the load's options say, or else the file; `None` if
    /// neither says it.
    pub pooling: Option<&'static str>,
    /// Values of a text's vector.
    pub dimensions: usize,
    /// The texts of the tokens that end an answer.
    pub stop_tokens: Vec<String>,
    /// Whether the template can switch reasoning on and off.
    pub thinking: bool,
}
