//! The whole model in plain Rust. Tests compare the GPU's results with it.
//!
//! It computes one token at a time, with f64 sums. [`Reference::forward`] is the model, [`ops`] has
//! its operations. The arithmetic follows bitnet.cpp, but is exact where bitnet.cpp approximates:
//! nothing is rounded to f16, and ternary products are summed as integers.

pub mod ops;

use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::model::Config;
use crate::model::weights::{Role, Weight, weights};
use crate::source::{Reader, Source};
use crate::ternary::{self, Layout};
use crate::tokenizer::Tokenizer;

/// A model in memory, with its KV cache.
pub struct Reference {
    /// The model's sizes and constants.
    pub config: Config,
    /// The model's tokenizer.
    pub tokenizer: Tokenizer,
    weights: Weights,
    cache: Vec<KvCache>,
    n_past: usize,
}

#[derive(Default)]
struct Weights {
    token_embd: Vec<f32>,  // [n_vocab][n_embd]
    output_norm: Vec<f32>, // [n_embd]
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    attn_norm: Vec<f32>,     // [n_embd]
    attn_q: Ternary,         // [n_head * head_dim][n_embd]
    attn_k: Ternary,         // [n_head_kv * head_dim][n_embd]
    attn_v: Ternary,         // [n_head_kv * head_dim][n_embd]
    attn_sub_norm: Vec<f32>, // [n_head * head_dim]
    attn_output: Ternary,    // [n_embd][n_head * head_dim]
    ffn_norm: Vec<f32>,      // [n_embd]
    ffn_gate: Ternary,       // [n_ff][n_embd]
    ffn_up: Ternary,         // [n_ff][n_embd]
    ffn_sub_norm: Vec<f32>,  // [n_ff]
    ffn_down: Ternary,       // [n_embd][n_ff]
}

/// A ternary matrix: `scale` times codes of −1, 0 or 1.
#[derive(Default)]
struct Ternary {
    codes: Vec<i8>,
    columns: usize,
    scale: f32,
}

/// The keys and values of one block, `[n_past][n_head_kv * head_dim]`.
#[derive(Default)]
struct KvCache {
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Reference {
    /// Appends `ids` to the context. Returns the logits after each id: `[ids.len()][n_vocab]`.
    ///
    /// Errors: `bad-option` (`ids`), `context-full`.
    pub fn forward(&mut self, ids: &[u32]) -> Result<Vec<Vec<f32>>> {
        self.check(ids)?;
        Ok(ids.iter().map(|&id| self.step(id as usize)).collect())
    }

    /// Computes one token.
    fn step(&mut self, id: usize) -> Vec<f32> {
        let Config { n_embd, n_head, n_head_kv, head_dim, eps, rope_freq_base, .. } = self.config;
        let pos = self.n_past;
        let mut x = self.weights.token_embd[id * n_embd..][..n_embd].to_vec();

        for (block, cache) in self.weights.blocks.iter().zip(&mut self.cache) {
            let h = Quantized::new(&ops::rms_norm(&x, &block.attn_norm, eps));
            let mut q = block.attn_q.times(&h);
            let mut k = block.attn_k.times(&h);
            let mut v = block.attn_v.times(&h);
            ops::rope_neox(&mut q, head_dim, pos, rope_freq_base);
            ops::rope_neox(&mut k, head_dim, pos, rope_freq_base);
            cache.k.append(&mut k);
            cache.v.append(&mut v);
            let attn = ops::attention(&q, &cache.k, &cache.v, n_head, n_head_kv, head_dim);
            let attn = Quantized::new(&ops::rms_norm(&attn, &block.attn_sub_norm, eps));
            add(&mut x, &block.attn_output.times(&attn));

            let h = Quantized::new(&ops::rms_norm(&x, &block.ffn_norm, eps));
            let gate = block.ffn_gate.times(&h);
            let up = block.ffn_up.times(&h);
            let h = ops::relu2_glu(&gate, &up);
            let h = Quantized::new(&ops::rms_norm(&h, &block.ffn_sub_norm, eps));
            add(&mut x, &block.ffn_down.times(&h));
        }

        self.n_past += 1;
        let h = ops::rms_norm(&x, &self.weights.output_norm, eps);
        ops::matvec_f32(&self.weights.token_embd, n_embd, &h)
    }

    /// Empties the context.
    pub fn reset(&mut self) {
        self.cache.iter_mut().for_each(|cache| *cache = KvCache::default());
        self.n_past = 0;
    }

    /// Returns the number of tokens in the context.
    pub fn n_past(&self) -> usize {
        self.n_past
    }

    fn check(&self, ids: &[u32]) -> Result<()> {
        let Config { n_vocab, n_ctx, .. } = self.config;
        let bad = |why: String| Err(Error::BadOption { name: "ids".into(), why });
        if ids.is_empty() {
            return bad("there are no tokens".into());
        }
        if let Some(id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
            return bad(format!("token {id} is outside the vocabulary of {n_vocab}"));
        }
        let prompt = self.n_past + ids.len();
        if prompt > n_ctx {
            return Err(Error::ContextFull { prompt, context: n_ctx });
        }
        Ok(())
    }
}

/// A row of activations as int8. It is quantised once for all matrices that multiply it.
struct Quantized {
    q: Vec<i8>,
    s: f32,
}

impl Quantized {
    fn new(x: &[f32]) -> Self {
        let (q, s) = ops::quantize(x);
        Self { q, s }
    }
}

impl Ternary {
    /// The product with a row, in bitnet.cpp's order of operations.
    fn times(&self, x: &Quantized) -> Vec<f32> {
        let sums = ops::matvec_ternary(&self.codes, self.columns, &x.q);
        sums.into_iter().map(|sum| sum as f32 / x.s * self.scale).collect()
    }
}

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

impl Reference {
    /// Loads a GGUF file.
    ///
    /// Errors: `bad-gguf`, `unsupported-model`, `missing-tensor`, `tensor-shape`, and those of the
    /// source.
    pub async fn load<S: Source>(reader: &mut Reader<S>) -> Result<Self> {
        Self::load_as(reader, Layout::default()).await
    }

    /// Loads a GGUF file whose ternary codes are in `layout`.
    pub async fn load_as<S: Source>(reader: &mut Reader<S>, layout: Layout) -> Result<Self> {
        let gguf = Gguf::read(reader).await?;
        let config = Config::from_gguf(&gguf)?;
        let table = weights(&config, &gguf)?;
        let tokenizer = Tokenizer::from_gguf(&gguf, &config)?;

        let mut weights = Weights::default();
        weights.blocks.resize_with(config.n_layer, Block::default);
        for weight in &table {
            let tensor = &weight.tensor;
            let bytes = reader.read(tensor.offset..tensor.offset + tensor.len).await?;
            weights.put(weight, &bytes, layout)?;
        }
        let cache = (0..config.n_layer).map(|_| KvCache::default()).collect();
        Ok(Self { config, tokenizer, weights, cache, n_past: 0 })
    }
}

impl Weights {
    fn put(&mut self, weight: &Weight, bytes: &[u8], layout: Layout) -> Result<()> {
        let block = &mut self.blocks[weight.block];
        match weight.role {
            Role::TokenEmbd => self.token_embd = weight.floats(bytes)?,
            Role::OutputNorm => self.output_norm = weight.floats(bytes)?,
            Role::AttnNorm => block.attn_norm = weight.floats(bytes)?,
            Role::AttnSubNorm => block.attn_sub_norm = weight.floats(bytes)?,
            Role::FfnNorm => block.ffn_norm = weight.floats(bytes)?,
            Role::FfnSubNorm => block.ffn_sub_norm = weight.floats(bytes)?,
            Role::AttnQ => block.attn_q = Ternary::new(weight, bytes, layout)?,
            Role::AttnK => block.attn_k = Ternary::new(weight, bytes, layout)?,
            Role::AttnV => block.attn_v = Ternary::new(weight, bytes, layout)?,
            Role::AttnOutput => block.attn_output = Ternary::new(weight, bytes, layout)?,
            Role::FfnGate => block.ffn_gate = Ternary::new(weight, bytes, layout)?,
            Role::FfnUp => block.ffn_up = Ternary::new(weight, bytes, layout)?,
            Role::FfnDown => block.ffn_down = Ternary::new(weight, bytes, layout)?,
        }
        Ok(())
    }
}

impl Ternary {
    fn new(weight: &Weight, bytes: &[u8], layout: Layout) -> Result<Self> {
        let (codes, tail) = bytes.split_at(bytes.len() - ternary::TAIL);
        weight.check_codes(codes, 0)?;
        let scale = weight.scale(tail)?;
        Ok(Self { codes: ternary::unpack(codes, layout), columns: weight.columns(), scale })
    }
}
