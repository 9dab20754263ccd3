//! How a model is held.

use serde::Serialize;

/// How to hold the model.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Tokens of KV cache; `None`: the model's own limit, as far as a binding and 1 GiB hold it.
    pub context: Option<usize>,
    /// How the KV cache holds keys and values.
    pub kv: KvType,
    /// How the LM head is held.
    pub lm_head: LmHead,
    /// The file's I2_S codes are in the layout of ARM builds (64-element blocks).
    pub i2s_arm: bool,
    /// Do not round the inputs of packed matrices to int8. That is slower; it shows how much the
    /// rounding changes.
    pub float_activations: bool,
    /// On one adapter with one driver, a call with the same input, options and seed gives the same bits of
    /// logits and the same text, whatever ran before it or beside it. Nothing depends on a measured time,
    /// prompts are computed in chunks of one size, and only whole chunks of an earlier prompt are used again.
    pub deterministic: bool,
}

/// How the LM head, which is the embedding too, is held. Tokens and logits are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LmHead {
    /// `Int8` where it is faster, else `F16`.
    #[default]
    Auto,
    /// As in the file. Every token reads all of it.
    F16,
    /// Each value split into two bytes, in no more memory. A token that is greedy, or drawn
    /// by the temperature alone, reads the upper bytes, and the lower ones only of rows that could be
    /// the best, also with biases and penalties. One drawn with top-k, top-p or min-p, without these,
    /// reads those of rows that may be kept, where they should be few.
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
    /// int8 times a scale, an f32, for each head of each position.
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
}
