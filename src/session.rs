//! A model ready to talk: prompt in, tokens out.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::chat::Message;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::sampling::Sampling;
use crate::source::{Reader, Source};
use crate::tokenizer::Tokenizer;

/// How to hold the model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Tokens of KV cache; `None` is the model's own limit.
    pub context: Option<usize>,
    /// Hold the KV cache as f32 instead of f16.
    pub kv_f32: bool,
    /// The file's ternary codes are in the layout of ARM builds (64-element blocks).
    pub i2s_arm: bool,
}

/// Told while a model loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// So many of the file's bytes are on the GPU.
    Upload {
        /// Bytes read and uploaded.
        loaded: u64,
        /// Bytes in the file.
        total: u64,
    },
    /// The kernels are being compiled.
    Compile,
}

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// The most tokens to generate; `None` is as many as the context holds.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the generation; they are not emitted.
    pub stop: Vec<String>,
}

/// One generated token. `text` holds whole characters only and may be empty: a character can
/// take several tokens, and text that could begin a stop string is held back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// The token; `None` for text that was held back and comes at the end.
    pub id: Option<u32>,
    /// The text it adds.
    pub text: String,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// A stop token or a stop text.
    Stop,
    /// `max_tokens`, or the context is full.
    Length,
    /// The caller stopped it.
    Abort,
}

/// What a generation took.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Of them, tokens whose keys and values were still in the cache.
    pub reused_tokens: usize,
    /// Tokens generated, the stop token not counted.
    pub completion_tokens: usize,
    /// Milliseconds from the call to the first token.
    pub time_to_first_token: f64,
    /// Prompt tokens computed per second.
    pub prefill_tokens_per_second: f64,
    /// Tokens per second after the first.
    pub decode_tokens_per_second: f64,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// What a loaded model is and how it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// `general.name`.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// Tokens the KV cache holds.
    pub context_length: usize,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Weights in the model.
    pub parameters: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes of GPU buffers.
    pub gpu_bytes: u64,
    /// The adapter's name.
    pub adapter: String,
    /// The kernel variants in use, `name` or `name/variant`.
    pub kernels: Vec<String>,
}

/// A loaded model with one KV cache.
pub struct Session {
    tokenizer: Tokenizer,
    info: Info,
}

impl Session {
    /// Loads a GGUF from `reader` onto `gpu`, piece by piece.
    pub async fn load<S: Source>(
        _gpu: Gpu,
        _reader: &mut Reader<S>,
        _options: &LoadOptions,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        Err(Error::Internal("not written yet".into()))
    }

    /// What the model is and how it runs.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens of a conversation that ends with the user's turn.
    pub fn chat_prompt(&self, messages: &[Message]) -> Result<Vec<u32>> {
        crate::chat::prompt(&self.tokenizer, messages)
    }

    /// Generates from `prompt`, handing each piece to `on_piece` until it breaks.
    ///
    /// Tokens whose keys and values are still in the cache from the generation before are not
    /// computed again. Dropping the future stops the GPU work after the steps in flight.
    pub async fn generate(
        &mut self,
        _prompt: &[u32],
        _options: &GenerateOptions,
        _on_piece: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<Stats> {
        Err(Error::Internal("not written yet".into()))
    }

    /// The logits after the last of `ids`, `[n_vocab]`.
    pub async fn logits(&mut self, _ids: &[u32]) -> Result<Vec<f32>> {
        Err(Error::Internal("not written yet".into()))
    }
}
