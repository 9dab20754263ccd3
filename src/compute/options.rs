//! How an engine holds a model.

use half::f16;
use serde::Serialize;

use crate::error::{Error, Result};

/// How to hold the model.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Tokens of KV cache; `None`: as many as the model allows, but no more than a binding and 1
    /// GiB hold.
    pub context: Option<usize>,
    /// How the KV cache holds keys and values.
    pub kv: KvType,
    /// How the LM head is held.
    pub lm_head: LmHead,
    /// Whether the file's I2_S codes are in the layout of ARM builds (blocks of 64 elements).
    pub i2s_arm: bool,
    /// Keeps the inputs of packed matrices as f32, instead of rounding them to int8. That is
    /// slower. It shows how much the rounding changes.
    pub float_activations: bool,
    /// Makes calls repeatable: on one adapter with one driver, a call with the same input, options
    /// and seed gives the same bits of logits and the same text, whatever ran before it or beside
    /// it. No measured time decides anything, prompts are computed in chunks of one size, and only
    /// whole chunks of an earlier prompt are used again.
    pub deterministic: bool,
}

impl EngineOptions {
    /// The tokens of context that are asked for, of a model that is made for `most`.
    ///
    /// Errors: `bad-option` (`context`).
    pub fn context_within(&self, most: usize) -> Result<Option<usize>> {
        let why = match self.context {
            None => return Ok(None),
            Some(n) if (1..=most).contains(&n) => return Ok(Some(n)),
            Some(0) => "must be at least 1".into(),
            Some(n) => format!("{n} tokens, but the model is made for {most}"),
        };
        Err(Error::BadOption { name: "context".into(), why })
    }
}

/// The machine that computes a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A GPU, by WebGPU, or natively by Vulkan, Metal or D3D12.
    #[default]
    Webgpu,
    /// The CPU.
    Cpu,
}

/// How the LM head, which is the embedding too, is held. Tokens and logits are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LmHead {
    /// `Int8` if it is faster, else `F16`.
    #[default]
    Auto,
    /// Held as in the file. Every token reads all bytes of the LM head.
    F16,
    /// Each value split into two bytes, in no more memory. A greedy token, or one drawn by the
    /// temperature alone, reads the upper bytes of all rows, and the lower bytes only of rows that
    /// could be the best, also with biases and penalties. A token drawn with top-k, top-p or min-p,
    /// without biases and penalties, reads the lower bytes of the rows that may be kept, if few
    /// rows are expected. The CPU does so for greedy tokens alone, without biases, penalties and masks.
    Int8,
}

/// How keys and values are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KvType {
    /// f16.
    #[default]
    F16,
    /// f32, which rounds nothing.
    F32,
    /// int8. Each head of each position has a scale, an f32.
    Int8,
}

impl KvType {
    /// Every type with its name for users.
    pub const ALL: [(&str, Self); 3] =
        [("f16", Self::F16), ("f32", Self::F32), ("int8", Self::Int8)];

    /// Bits of a value, without its scale.
    pub const fn bits(self) -> usize {
        match self {
            Self::Int8 => 8,
            Self::F16 => 16,
            Self::F32 => 32,
        }
    }

    /// The values of a head in a position of the KV cache. It has head after head, `of` heads of
    /// `head_dim` values, and then their scales if there are any. Empty if `position` is too short.
    pub fn head(self, position: &[u32], head: usize, of: usize, head_dim: usize) -> Vec<f32> {
        let bytes: &[u8] = bytemuck::cast_slice(position);
        let len = head_dim * self.bits() / 8;
        let Some(held) = bytes.get(head * len..(head + 1) * len) else { return Vec::new() };
        match self {
            Self::F32 => held.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Self::F16 => {
                held.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
            }
            Self::Int8 => {
                let scale =
                    position.get(of * len / 4 + head).map_or(0.0, |&bits| f32::from_bits(bits));
                held.iter().map(|&code| f32::from(code.cast_signed()) * scale).collect()
            }
        }
    }
}
