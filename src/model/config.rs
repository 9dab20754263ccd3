//! The sizes of a model, and checks of everything in the metadata that this crate relies on.

use crate::error::{Error, Result};
use crate::gguf::{Gguf, Metadata, Value, shortened};

use super::architecture::{ARCHITECTURES, Architecture};
use super::pooling::Pooling;
use super::role::Role;
use super::rope::{Rope, RopeScaling};

/// The sizes and constants of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The differences of its architecture.
    pub architecture: &'static Architecture,
    /// `general.name`; empty if the file has none.
    pub name: String,
    /// Tokens in the vocabulary. The embedding may have more rows, which are never used.
    pub n_vocab: usize,
    /// Tokens of context that the model was trained for.
    pub n_ctx: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Transformer blocks.
    pub n_layer: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Heads of keys and values. `n_head / n_head_kv` heads share each.
    pub n_head_kv: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Width of the feed-forward network.
    pub n_ff: usize,
    /// Added to the mean square in RMS norms.
    pub eps: f32,
    /// The constants of RoPE.
    pub rope: Rope,
    /// Multiplies the rows of the embedding.
    pub embedding_scale: f32,
    /// Multiplies the results of attention and of the feed-forward network before the residual
    /// stream takes them.
    pub residual_scale: f32,
    /// Divides the logits.
    pub logit_scale: f32,
    /// How the file makes one vector of a text; `None` if it does not say.
    pub pooling: Option<Pooling>,
}

/// A tensor, and the KV cache of a block, must have fewer elements than this. So 32 bits, in wasm
/// and in shaders, can count their bytes even at four bytes for each element.
const MAX_ELEMENTS: u64 = 1 << 30;

impl Config {
    /// The most tokens of a vocabulary.
    pub const MAX_VOCAB: usize = 1 << 22;
    /// The largest width of a head.
    pub const MAX_HEAD_DIM: usize = 1 << 12;

    /// Reads the metadata. Refuses a model that this crate would compute wrongly.
    ///
    /// Errors: `unsupported-model`, which names the key and its value.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        let metadata = &gguf.metadata;
        let name = metadata.require("general.architecture", Metadata::text)?;
        let Some(architecture) = Architecture::of_file(name, gguf) else {
            let known: Vec<String> =
                ARCHITECTURES.iter().map(|known| format!("`{}`", known.name)).collect();
            return unsupported(format!(
                "architecture `{name}`; this crate runs {}",
                known.join(", ")
            ));
        };
        let keys = Keys { metadata, prefix: architecture.name };
        keys.refuse_variants()?;

        let n_embd = keys.size("embedding_length", 1 << 16)?;
        let n_head = keys.size("attention.head_count", 1 << 12)?;
        let n_head_kv = match keys.integer("attention.head_count_kv")? {
            None => n_head,
            Some(_) => keys.size("attention.head_count_kv", 1 << 12)?,
        };
        let n_ctx = keys.size("context_length", 1 << 24)?;
        let scale = |name| if architecture.scales { keys.positive(name, None) } else { Ok(1.0) };
        let config = Self {
            architecture,
            name: metadata.text("general.name")?.unwrap_or_default().to_owned(),
            n_vocab: n_vocab(&keys, gguf)?,
            n_ctx,
            n_embd,
            n_layer: keys.size("block_count", 1 << 10)?,
            n_head,
            n_head_kv,
            head_dim: keys.head_dim(n_embd, n_head)?,
            n_ff: keys.size("feed_forward_length", 1 << 18)?,
            eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope: keys.rope(n_ctx)?,
            embedding_scale: scale("embedding_scale")?,
            residual_scale: scale("residual_scale")?,
            logit_scale: scale("logit_scale")?,
            pooling: keys.pooling()?,
        };
        config.check()?;
        Ok(config)
    }

    /// Elements of the queries of one token in one block: those of all heads.
    pub fn n_embd_q(&self) -> usize {
        self.n_head * self.head_dim
    }

    /// Elements of the keys of one token in one block; there are as many of the values.
    pub fn n_embd_kv(&self) -> usize {
        self.n_head_kv * self.head_dim
    }

    /// Whether the model was made to embed texts, and not to answer.
    pub fn is_embedding(&self) -> bool {
        self.pooling.is_some() || self.architecture.norms_inputs()
    }

    fn check(&self) -> Result<()> {
        for (name, size) in [("embedding_length", self.n_embd), ("feed_forward_length", self.n_ff)]
        {
            // Every 32 activations share a scale.
            if !size.is_multiple_of(32) {
                return unsupported(format!("{name} {size} is not a multiple of 32"));
            }
            // Below this size, a sum of products of codes and int8 is exact even in the f32 of
            // bitnet.cpp.
            if size >= 1 << 16 {
                return unsupported(format!("{name} {size} is above 65535"));
            }
        }
        if !self.head_dim.is_multiple_of(4) {
            return unsupported(format!("head width {} is not a multiple of 4", self.head_dim));
        }
        let (n_embd, n_embd_q) = (self.n_embd, self.n_embd_q());
        if self.architecture.square_attention && n_embd_q != n_embd {
            return unsupported(format!(
                "{} heads of {} are {n_embd_q} wide, the residual stream {n_embd}",
                self.n_head, self.head_dim
            ));
        }
        if !n_embd_q.is_multiple_of(32) {
            return unsupported(format!("heads of {n_embd_q} in all, not a multiple of 32"));
        }
        if !self.n_head.is_multiple_of(self.n_head_kv) {
            let (n_head, n_head_kv) = (self.n_head, self.n_head_kv);
            return unsupported(format!("{n_head_kv} KV heads do not divide {n_head} heads"));
        }
        for (what, rows, columns) in [
            ("an embedding", self.n_vocab, self.n_embd),
            ("a query matrix", self.n_embd_q(), self.n_embd),
            ("a feed-forward matrix", self.n_ff, self.n_embd),
            ("a KV cache of a block", self.n_ctx, self.n_embd_kv()),
        ] {
            if rows as u64 * columns as u64 >= MAX_ELEMENTS {
                return unsupported(format!("{what} of {rows} x {columns} elements"));
            }
        }
        Ok(())
    }
}

/// The size of the vocabulary: the number of tokens, or `vocab_size` in a file without tokens. In a
/// file with both, `vocab_size` may count the rows of the embedding, which can be more.
fn n_vocab(keys: &Keys<'_>, gguf: &Gguf) -> Result<usize> {
    let tokens = keys.metadata.strings("tokenizer.ggml.tokens")?.map(|tokens| tokens.len());
    let embd = gguf.tensor(&format!("{}.weight", Role::TokenEmbd.name()));
    let rows = embd.and_then(|embd| embd.ne.get(1)).copied();
    match (keys.integer("vocab_size")?, tokens) {
        (Some(size), Some(tokens)) if size != tokens as u64 && Some(size) != rows => {
            unsupported(format!("vocab_size is {size}, but there are {tokens} tokens"))
        }
        (_, Some(tokens)) if (1..=Config::MAX_VOCAB).contains(&tokens) => Ok(tokens),
        _ => keys.size("vocab_size", Config::MAX_VOCAB),
    }
}

/// The metadata keys of one architecture. Its name begins them, and may have dots in it.
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

    /// The width of a head. If several keys say it, they must agree.
    fn head_dim(&self, n_embd: usize, n_head: usize) -> Result<usize> {
        let head_dim = match self.integer("attention.key_length")? {
            Some(_) => self.size("attention.key_length", Config::MAX_HEAD_DIM)?,
            None if n_embd.is_multiple_of(n_head) => n_embd / n_head,
            None => {
                return unsupported(format!("{n_head} heads do not divide a width of {n_embd}"));
            }
        };
        for name in ["rope.dimension_count", "attention.value_length"] {
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
        Ok(head_dim)
    }

    fn rope(&self, n_ctx: usize) -> Result<Rope> {
        let base = self.positive("rope.freq_base", Some(10000.0))?;
        let factor = self.scaling_factor()?;
        let kind = self.metadata.text(&self.key("rope.scaling.type"))?.unwrap_or("linear");
        let attn_factor = self.positive("rope.scaling.attn_factor", Some(1.0))?;
        let original = match self.integer("rope.scaling.original_context_length")? {
            None => n_ctx,
            Some(_) => self.size("rope.scaling.original_context_length", 1 << 24)?,
        };
        let scaling = match kind {
            "none" => RopeScaling::Linear { factor: 1.0 },
            "linear" => RopeScaling::Linear { factor },
            // YaRN's ramp divides by the logarithm of the base.
            "yarn" if base <= 1.0 => {
                let key = self.key("rope.freq_base");
                return unsupported(format!("`{key}` is {base}; YaRN needs more than 1"));
            }
            "yarn" => {
                self.expect_usual_yarn()?;
                RopeScaling::Yarn { factor, original: original as f64 }
            }
            "longrope" => RopeScaling::LongRope { factor, original: original as u64 },
            other => {
                let key = self.key("rope.scaling.type");
                return unsupported(format!("`{key}` is `{other}`"));
            }
        };
        Ok(Rope { base: f64::from(base), scaling, attn_factor: f64::from(attn_factor) })
    }

    /// The factor by which the context was extended. 0 stands for 1.
    fn scaling_factor(&self) -> Result<f64> {
        for name in ["rope.scaling.factor", "rope.scale_linear"] {
            let key = self.key(name);
            match self.metadata.float(&key)? {
                None => {}
                Some(0.0) => return Ok(1.0),
                Some(factor) if factor.is_finite() && factor >= 1.0 => return Ok(factor.into()),
                Some(factor) => return unsupported(format!("`{key}` is {factor}, not 1 or more")),
            }
        }
        Ok(1.0)
    }

    /// How the file makes one vector of a text. -1 and 0 say that it does not.
    fn pooling(&self) -> Result<Option<Pooling>> {
        let key = self.key("pooling_type");
        let Some(value) = self.metadata.get(&key) else { return Ok(None) };
        match value.integer() {
            Some(-1 | 0) => Ok(None),
            Some(number) if Pooling::numbered(number).is_some() => Ok(Pooling::numbered(number)),
            _ => unsupported(format!("`{key}` is {value}, not mean (1), cls (2) or last (3)")),
        }
    }

    /// Refuses unusual values of keys that llama.cpp ignores for the architectures here. A file
    /// with such values was made for another program.
    fn expect_usual_yarn(&self) -> Result<()> {
        for (name, usual) in [
            ("rope.scaling.yarn_ext_factor", 1.0),
            ("rope.scaling.yarn_attn_factor", 1.0),
            ("rope.scaling.yarn_beta_fast", 32.0),
            ("rope.scaling.yarn_beta_slow", 1.0),
            ("rope.scaling.yarn_log_multiplier", 0.0),
        ] {
            let key = self.key(name);
            if let Some(value) = self.metadata.float(&key)?.filter(|&value| value != usual) {
                return unsupported(format!("`{key}` is {value}, not {usual}"));
            }
        }
        Ok(())
    }

    /// Refuses settings that would change the computation. They must be absent or neutral.
    fn refuse_variants(&self) -> Result<()> {
        let files = self.metadata.integer("split.count")?;
        if files.is_some_and(|files| files > 1) {
            return unsupported("the file is one of the files of a split model; join them first");
        }
        if let Some(key) =
            self.metadata.iter().map(|(key, _)| key).find(|key| key.starts_with("prism.hadamard."))
        {
            let key = shortened(key);
            return unsupported(format!("`{key}`: the weights are in a rotated basis"));
        }
        let neutral = |name: &str, value: &Value| match value {
            Value::F32(factor) => *factor == 1.0,
            Value::Bool(causal) => *causal && name == "attention.causal",
            other => other.integer() == Some(0),
        };
        let variants = [
            "attention.causal",
            "attention.sliding_window",
            "attention.scale",
            "attention.clamp_kqv",
            "attention.max_alibi_bias",
            "expert_count",
        ];
        let scales = ["embedding_scale", "logit_scale", "residual_scale"];
        let applied = Architecture::named(self.prefix).is_some_and(|known| known.scales);
        for name in variants.into_iter().chain(scales.into_iter().filter(|_| !applied)) {
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
