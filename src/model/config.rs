//! The sizes of a model, and checks of everything in the metadata that this crate relies on.

use crate::error::{Error, Result};
use crate::gguf::{Gguf, Metadata, Value};

/// The architectures that this crate runs. They differ in name only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// `bitnet-b1.58`: the official 2B-4T, and what today's converters write.
    BitNetB158,
    /// `bitnet-25`: the first upload of 2B-4T, and models derived from it.
    BitNet25,
}

impl Architecture {
    /// `general.architecture`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BitNetB158 => "bitnet-b1.58",
            Self::BitNet25 => "bitnet-25",
        }
    }
}

/// The sizes and constants of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The name of its architecture.
    pub architecture: Architecture,
    /// `general.name`; empty if the file has none.
    pub name: String,
    /// Tokens in the vocabulary.
    pub n_vocab: usize,
    /// Tokens of context that the model was trained for.
    pub n_ctx: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Transformer blocks.
    pub n_layer: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Heads of keys and values, each shared by `n_head / n_head_kv` heads.
    pub n_head_kv: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Width of the feed-forward network.
    pub n_ff: usize,
    /// Added to the mean square in RMS norms.
    pub eps: f32,
    /// Base of the rotary embedding's frequencies.
    pub rope_freq_base: f32,
}

/// Tensors, and the KV cache of a block, must have fewer elements than this. Then their bytes can
/// be counted with the 32 bits of wasm and of shaders, even at four bytes for each element.
const MAX_ELEMENTS: u64 = 1 << 30;

impl Config {
    /// Reads the metadata. Refuses a model that this crate would compute wrongly.
    ///
    /// Errors: `unsupported-model`, which names the key and its value.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        let metadata = &gguf.metadata;
        let architecture = match metadata.require("general.architecture", Metadata::text)? {
            "bitnet-b1.58" => Architecture::BitNetB158,
            "bitnet-25" => Architecture::BitNet25,
            other => {
                return unsupported(format!(
                    "architecture `{other}`; this crate runs `bitnet-b1.58` and `bitnet-25`"
                ));
            }
        };
        let keys = Keys { metadata, prefix: architecture.as_str() };
        keys.refuse_variants()?;

        let n_vocab = n_vocab(&keys)?;
        let n_embd = keys.size("embedding_length", 1 << 16)?;
        let n_head = keys.size("attention.head_count", 1 << 12)?;
        let n_head_kv = match keys.integer("attention.head_count_kv")? {
            None => n_head,
            Some(_) => keys.size("attention.head_count_kv", 1 << 12)?,
        };
        if !n_embd.is_multiple_of(n_head) {
            return unsupported(format!("{n_head} heads do not divide a width of {n_embd}"));
        }
        let config = Self {
            architecture,
            name: metadata.text("general.name")?.unwrap_or_default().to_owned(),
            n_vocab,
            n_ctx: keys.size("context_length", 1 << 24)?,
            n_embd,
            n_layer: keys.size("block_count", 1 << 10)?,
            n_head,
            n_head_kv,
            head_dim: n_embd / n_head,
            n_ff: keys.size("feed_forward_length", 1 << 18)?,
            eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_freq_base: keys.positive("rope.freq_base", Some(10000.0))?,
        };
        config.check()?;
        keys.expect_head_dim(config.head_dim)?;
        Ok(config)
    }

    /// Elements of the keys of one token in one block; there are as many of the values.
    pub fn n_embd_kv(&self) -> usize {
        self.n_head_kv * self.head_dim
    }

    fn check(&self) -> Result<()> {
        for (name, size) in [("embedding_length", self.n_embd), ("feed_forward_length", self.n_ff)]
        {
            // No block of 128 ternary codes may extend over two rows.
            if !size.is_multiple_of(128) {
                return unsupported(format!("{name} {size} is not a multiple of 128"));
            }
            // Below, a sum of products of codes and int8 is exact even in the f32 of bitnet.cpp.
            if size >= 1 << 16 {
                return unsupported(format!("{name} {size} is above 65535"));
            }
        }
        if !self.head_dim.is_multiple_of(2) {
            return unsupported(format!("head width {} is odd", self.head_dim));
        }
        if !self.n_head.is_multiple_of(self.n_head_kv) {
            let (n_head, n_head_kv) = (self.n_head, self.n_head_kv);
            return unsupported(format!("{n_head_kv} KV heads do not divide {n_head} heads"));
        }
        for (what, rows, columns) in [
            ("embedding", self.n_vocab, self.n_embd),
            ("feed-forward matrix", self.n_ff, self.n_embd),
            ("KV cache of a block", self.n_ctx, self.n_embd_kv()),
        ] {
            if rows as u64 * columns as u64 >= MAX_ELEMENTS {
                return unsupported(format!("a {what} of {rows} x {columns} elements"));
            }
        }
        Ok(())
    }
}

/// The size of the vocabulary: from `vocab_size`, or else the number of tokens.
fn n_vocab(keys: &Keys<'_>) -> Result<usize> {
    const MAX: usize = 1 << 22;
    let tokens = keys.metadata.strings("tokenizer.ggml.tokens")?.map(|tokens| tokens.len());
    match (keys.integer("vocab_size")?, tokens) {
        (Some(size), Some(tokens)) if size != tokens as u64 => {
            unsupported(format!("vocab_size is {size}, but there are {tokens} tokens"))
        }
        (None, Some(tokens)) if (1..=MAX).contains(&tokens) => Ok(tokens),
        _ => keys.size("vocab_size", MAX),
    }
}

/// The metadata keys of one architecture, whose name begins them and may have dots in it.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn integer(&self, name: &str) -> Result<Option<u64>> {
        self.metadata.integer(&self.key(name))
    }

    /// A required size from 1 to `max`.
    fn size(&self, name: &str, max: usize) -> Result<usize> {
        let key = self.key(name);
        let size = self.metadata.require(&key, Metadata::integer)?;
        usize::try_from(size)
            .ok()
            .filter(|size| (1..=max).contains(size))
            .ok_or_else(|| Error::UnsupportedModel(format!("`{key}` is {size}, not 1 to {max}")))
    }

    /// A positive, finite float.
    fn positive(&self, name: &str, default: Option<f32>) -> Result<f32> {
        let key = self.key(name);
        let value = match default {
            None => self.metadata.require(&key, Metadata::float)?,
            Some(default) => self.metadata.float(&key)?.unwrap_or(default),
        };
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        unsupported(format!("`{key}` is {value}, not a positive number"))
    }

    /// Several keys may say how wide a head is: they must agree.
    fn expect_head_dim(&self, head_dim: usize) -> Result<()> {
        for name in ["rope.dimension_count", "attention.key_length", "attention.value_length"] {
            match self.integer(name)? {
                Some(width) if width != head_dim as u64 => {
                    let key = self.key(name);
                    return unsupported(format!(
                        "`{key}` is {width}, the heads are {head_dim} wide"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Settings that would change the computation must be absent or neutral.
    fn refuse_variants(&self) -> Result<()> {
        let files = self.metadata.integer("split.count")?;
        if files.is_some_and(|files| files > 1) {
            return unsupported("the file is one of the files of a split model; join them first");
        }
        let neutral = |name: &str, value: &Value| match value {
            Value::F32(factor) => *factor == 1.0,
            Value::Bool(causal) => *causal && name == "attention.causal",
            Value::String(kind) => kind == b"none" || kind == b"linear",
            other => other.integer() == Some(0),
        };
        for name in [
            "rope.scaling.type",
            "rope.scaling.factor",
            "rope.scale_linear",
            "attention.causal",
            "attention.sliding_window",
            "attention.scale",
            "attention.clamp_kqv",
            "attention.max_alibi_bias",
            "embedding_scale",
            "logit_scale",
            "residual_scale",
            "expert_count",
        ] {
            let key = self.key(name);
            if let Some(value) = self.metadata.get(&key).filter(|value| !neutral(name, value)) {
                return unsupported(format!("`{key}` is {value}"));
            }
        }
        Ok(())
    }
}

fn unsupported<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::UnsupportedModel(why.into()))
}
