//! The whole model in plain Rust. Tests compare the GPU's results with it.
//!
//! It computes one token at a time, with f64 sums. [`Reference::forward`] is the model, [`ops`] has
//! its operations, and [`OnReference`] makes it compute for a
//! session. It is exact where llama.cpp and
//! bitnet.cpp approximate: it rounds nothing to f16. It rounds the inputs of a product to int8 only
//! for I2_S weights, because their models were trained so.

mod open;
pub mod ops;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::compute::{Progress, Site, Tap};
use crate::error::{Error, Result};
use crate::gguf::{Gguf, TensorType};
use crate::model::adapter::{Adapter, Adapters};
use crate::model::weights::weights;
use crate::model::{Angles, Config, Role, RopePairs, Weight};
use crate::source::{Reader, Source};
use crate::ternary::{self, Layout};
use crate::tokenizer::Tokenizer;

pub use open::OnReference;

/// A model in memory, with its KV cache.
pub struct Reference {
    /// The model's sizes and constants.
    pub config: Config,
    /// The model's tokenizer.
    pub tokenizer: Tokenizer,
    table: Vec<Weight>,
    layers: Layers,
    n_past: usize,
}

/// The weights in memory, with a KV cache that several sequences may share.
struct Layers {
    config: Config,
    weights: Weights,
    angles: Angles,
    cache: Vec<KvCache>,
    adapters: Adapters,
    /// A hash of the bytes of all tensors.
    sample: u64,
}

/// How to load a [`Reference`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceOptions {
    /// The order of the file's I2_S codes.
    pub layout: Layout,
    /// Tokens of context, which decide the factors of longrope; `None`: the model's own limit.
    pub context: Option<usize>,
}

#[derive(Default)]
struct Weights {
    token_embd: Vec<f32>,            // [n_vocab][n_embd]
    output: Option<Vec<f32>>,        // [n_vocab][n_embd]
    output_norm: Vec<f32>,           // [n_embd]
    rope_divisors: Option<Vec<f32>>, // [head_dim / 2]
    blocks: Vec<Block>,
}

/// A block's tensors. Norms that the architecture does not have are `None`.
#[derive(Default)]
struct Block {
    attn_norm: Vec<f32>,                // [n_embd]
    attn_q: Matrix,                     // [n_head * head_dim][n_embd]
    attn_k: Matrix,                     // [n_head_kv * head_dim][n_embd]
    attn_v: Matrix,                     // [n_head_kv * head_dim][n_embd]
    attn_q_norm: Option<Vec<f32>>,      // [head_dim]
    attn_k_norm: Option<Vec<f32>>,      // [head_dim]
    attn_q_norm_in: Option<Vec<f32>>,   // [n_embd]
    attn_k_norm_in: Option<Vec<f32>>,   // [n_embd]
    attn_v_norm_in: Option<Vec<f32>>,   // [n_embd]
    attn_sub_norm: Option<Vec<f32>>,    // [n_head * head_dim]
    attn_output: Matrix,                // [n_embd][n_head * head_dim]
    ffn_norm: Vec<f32>,                 // [n_embd]
    ffn_gate: Matrix,                   // [n_ff][n_embd]
    ffn_up: Matrix,                     // [n_ff][n_embd]
    ffn_gate_norm_in: Option<Vec<f32>>, // [n_embd]
    ffn_up_norm_in: Option<Vec<f32>>,   // [n_embd]
    ffn_sub_norm: Option<Vec<f32>>,     // [n_ff]
    ffn_down: Matrix,                   // [n_embd][n_ff]
}

enum Matrix {
    /// A matrix of `scale` times codes of −1, 0 or 1. Its input is rounded to int8.
    Ternary { codes: Vec<i8>, columns: usize, scale: f32 },
    /// A matrix of any values.
    Floats { values: Vec<f32>, columns: usize },
}

/// The keys and values of one block, `[positions][n_head_kv * head_dim]`.
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
        let logits = |&id: &u32| {
            let x = self.layers.step(id as usize, 0, self.n_past);
            self.n_past += 1;
            self.layers.logits(&x)
        };
        Ok(ids.iter().map(logits).collect())
    }

    /// Reads an adapter for this model.
    ///
    /// Errors: those of [`Adapter::read`].
    pub async fn load_adapter<S: Source>(&self, reader: &mut Reader<S>) -> Result<Adapter> {
        Adapter::read(reader, &self.config, &self.table).await
    }

    /// Applies these adapters, and no others, from the next token on. Tokens of the context stay as they
    /// are.
    pub fn set_adapters(&mut self, adapters: Adapters) {
        self.layers.adapters = adapters;
    }

    /// Empties the context.
    pub fn reset(&mut self) {
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

impl Layers {
    /// Computes one token of the sequence that begins at `first` in the KV cache, at its position `pos`.
    /// Gives the residual stream after the last block `[n_embd]`.
    fn step(&mut self, id: usize, first: usize, pos: usize) -> Vec<f32> {
        self.step_to(Tap::Product(self.config.n_layer - 1, Site::Down), id, first, pos)
    }

    /// Like [`Layers::step`], but only as far as `tap`. Gives the values there.
    fn step_to(&mut self, tap: Tap, id: usize, first: usize, pos: usize) -> Vec<f32> {
        let config = &self.config;
        let Config { n_embd, n_head, n_head_kv, head_dim, eps, .. } = *config;
        let norm_if = |x: Vec<f32>, weight: &Option<Vec<f32>>| match weight {
            Some(weight) => ops::rms_norm(&x, weight, eps),
            None => x,
        };
        let rope: Vec<[f64; 2]> = self.angles.at(pos).collect();
        let rotate = |x: &mut [f32]| match config.architecture.rope_pairs {
            RopePairs::Halves => ops::rope_halves(x, &rope),
            RopePairs::Neighbours => ops::rope_neighbours(x, &rope),
        };
        let mut x = self.weights.token_embd[id * n_embd..][..n_embd].to_vec();
        for (pair, factor) in self.adapters.on(Role::TokenEmbd, 0) {
            let thin = &pair.a[id * pair.rank..][..pair.rank];
            add(&mut x, &ops::matvec_f32(&pair.b, pair.rank, thin), factor);
        }
        x.iter_mut().for_each(|x| *x *= config.embedding_scale);

        for (n, (block, cache)) in self.weights.blocks.iter().zip(&mut self.cache).enumerate() {
            let is_last = |here: Site| tap == Tap::Product(n, here);
            let product = |w: &Matrix, role: Role, x: &[f32]| {
                let mut y = w.times(x);
                add_adapters(&self.adapters, (role, n), x, &mut y);
                y
            };
            let h = ops::rms_norm(&x, &block.attn_norm, eps);
            let of_h = |w, role, norm_in| product(w, role, &norm_if(h.clone(), norm_in));
            let q = of_h(&block.attn_q, Role::AttnQ, &block.attn_q_norm_in);
            let k = of_h(&block.attn_k, Role::AttnK, &block.attn_k_norm_in);
            let v = of_h(&block.attn_v, Role::AttnV, &block.attn_v_norm_in);
            let products = is_last(Site::Qkv).then(|| [&q[..], &k, &v].concat());
            let mut q = norm_if(q, &block.attn_q_norm);
            let mut k = norm_if(k, &block.attn_k_norm);
            rotate(&mut q);
            rotate(&mut k);
            let [keys, values] = cache.put(first, pos, [&k, &v]);
            if let Some(products) = products {
                return products;
            }
            if tap == Tap::Queries(n) {
                let root = (head_dim as f32).sqrt();
                return q.into_iter().map(|q| q / root).collect();
            }
            let attn = ops::attention(&q, keys, values, n_head, n_head_kv, head_dim);
            let attn = norm_if(attn, &block.attn_sub_norm);
            let y = product(&block.attn_output, Role::AttnOutput, &attn);
            add(&mut x, &y, config.residual_scale);
            if is_last(Site::Output) {
                return x;
            }

            let h = ops::rms_norm(&x, &block.ffn_norm, eps);
            let of_h = |w, role, norm_in| product(w, role, &norm_if(h.clone(), norm_in));
            let gate = of_h(&block.ffn_gate, Role::FfnGate, &block.ffn_gate_norm_in);
            let up = of_h(&block.ffn_up, Role::FfnUp, &block.ffn_up_norm_in);
            let h = ops::gated(config.architecture.activation, &gate, &up);
            if is_last(Site::GateUp) {
                return h;
            }
            let h = norm_if(h, &block.ffn_sub_norm);
            let y = product(&block.ffn_down, Role::FfnDown, &h);
            add(&mut x, &y, config.residual_scale);
            if is_last(Site::Down) {
                return x;
            }
        }
        x
    }

    /// The hidden state of a residual stream, which is the stream after the last norm.
    fn hidden(&self, x: &[f32]) -> Vec<f32> {
        ops::rms_norm(x, &self.weights.output_norm, self.config.eps)
    }

    /// The logits `[n_vocab]` of a residual stream.
    fn logits(&self, x: &[f32]) -> Vec<f32> {
        let config = &self.config;
        let h = self.hidden(x);
        let lm_head = self.weights.output.as_ref().unwrap_or(&self.weights.token_embd);
        let mut logits = ops::matvec_f32(lm_head, config.n_embd, &h);
        add_adapters(&self.adapters, (Role::Output, 0), &h, &mut logits);
        logits.truncate(config.n_vocab);
        logits.iter_mut().for_each(|logit| *logit /= config.logit_scale);
        logits
    }

    /// The buffers of the KV cache: the keys of the first block, its values, and so on.
    fn cache_buffers(&mut self) -> impl Iterator<Item = &mut Vec<f32>> {
        self.cache.iter_mut().flat_map(|KvCache { k, v }| [k, v])
    }
}

impl KvCache {
    /// Puts a key and a value at position `pos` of the sequence that begins at `first`. Gives all
    /// keys and values of the sequence up to there.
    fn put(&mut self, first: usize, pos: usize, new: [&[f32]; 2]) -> [&[f32]; 2] {
        let Self { k, v } = self;
        let mut all = [k, v].into_iter().zip(new);
        [(); 2].map(|()| match all.next() {
            None => &[][..],
            Some((held, new)) => {
                let (row, at) = (new.len(), (first + pos) * new.len());
                held.resize(held.len().max(at + row), 0.0);
                held[at..at + row].copy_from_slice(new);
                &held[first * row..at + row]
            }
        })
    }
}

impl Default for Matrix {
    fn default() -> Self {
        Self::Floats { values: Vec::new(), columns: 1 }
    }
}

impl Matrix {
    /// The product with a row `x`. For I2_S, it has bitnet.cpp's order of operations.
    fn times(&self, x: &[f32]) -> Vec<f32> {
        match self {
            Self::Ternary { codes, columns, scale } => {
                let (q, s) = ops::quantize(x);
                let sums = ops::matvec_ternary(codes, *columns, &q);
                sums.into_iter().map(|sum| sum as f32 / s * scale).collect()
            }
            Self::Floats { values, columns } => ops::matvec_f32(values, *columns, x),
        }
    }

    fn new(weight: &Weight, bytes: &[u8], layout: Layout) -> Result<Self> {
        let columns = weight.columns();
        if weight.tensor.ty != TensorType::I2S {
            return Ok(Self::Floats { values: weight.floats(bytes)?, columns });
        }
        let (codes, tail) = bytes.split_at(bytes.len() - ternary::TAIL);
        weight.check_codes(codes, 0)?;
        let scale = weight.scale(tail)?;
        Ok(Self::Ternary { codes: ternary::unpack(codes, layout), columns, scale })
    }
}

fn add(x: &mut [f32], y: &[f32], scale: f32) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += scale * y);
}

/// Adds what the pairs on a matrix make of its input `x` to its product `y`.
fn add_adapters(adapters: &Adapters, (role, block): (Role, usize), x: &[f32], y: &mut [f32]) {
    for (pair, factor) in adapters.on(role, block) {
        let thin = ops::matvec_f32(&pair.a, x.len(), x);
        add(y, &ops::matvec_f32(&pair.b, pair.rank, &thin), factor);
    }
}

impl Reference {
    /// Loads a GGUF file.
    ///
    /// Errors: `bad-gguf`, `unsupported-model`, `missing-tensor`, `tensor-shape`, and those of the
    /// source.
    pub async fn load<S: Source>(reader: &mut Reader<S>) -> Result<Self> {
        Self::load_as(reader, ReferenceOptions::default()).await
    }

    /// Loads a GGUF file in the way that `options` ask for.
    pub async fn load_as<S: Source>(
        reader: &mut Reader<S>,
        options: ReferenceOptions,
    ) -> Result<Self> {
        let gguf = Gguf::read(reader).await?;
        let config = Config::from_gguf(&gguf)?;
        let table = weights(&config, &gguf)?;
        let tokenizer = Tokenizer::from_gguf(&gguf, &config)?;

        let context = options.context.unwrap_or(config.n_ctx);
        let layers =
            Layers::load(reader, config.clone(), &table, options.layout, context, &mut |_| {})
                .await?;
        Ok(Self { config, tokenizer, table, layers, n_past: 0 })
    }
}

impl Layers {
    /// Loads the tensors of `table`.
    async fn load<S: Source>(
        reader: &mut Reader<S>,
        config: Config,
        table: &[Weight],
        layout: Layout,
        context: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let total = reader.len();
        let mut hasher = DefaultHasher::new();
        let unused = match config.rope.takes_long_factors(context) {
            true => Role::RopeFactorsShort,
            false => Role::RopeFactorsLong,
        };
        let mut weights = Weights::default();
        weights.blocks.resize_with(config.n_layer, Block::default);
        for weight in table {
            let tensor = &weight.tensor;
            let bytes = reader.read(tensor.offset..tensor.offset + tensor.len).await?;
            bytes.hash(&mut hasher);
            progress(Progress::Upload { loaded: tensor.offset + tensor.len, total });
            if weight.role == unused {
                // Only other contexts take this tensor. But if it is bad, the file is damaged.
                weight.divisors(&bytes)?;
            } else {
                weights.put(weight, &bytes, layout)?;
            }
        }
        let angles = Angles::new(&config.rope, config.head_dim, weights.rope_divisors.as_deref());
        let cache = (0..config.n_layer).map(|_| KvCache::default()).collect();
        let (adapters, sample) = (Adapters::default(), hasher.finish());
        Ok(Self { config, weights, angles, cache, adapters, sample })
    }
}

impl Weights {
    fn put(&mut self, weight: &Weight, bytes: &[u8], layout: Layout) -> Result<()> {
        let block = &mut self.blocks[weight.block];
        let matrix = |matrix: &mut Matrix| Matrix::new(weight, bytes, layout).map(|m| *matrix = m);
        match weight.role {
            Role::TokenEmbd => self.token_embd = weight.floats(bytes)?,
            Role::Output => self.output = Some(weight.floats(bytes)?),
            Role::OutputNorm => self.output_norm = weight.floats(bytes)?,
            Role::RopeFreqs | Role::RopeFactorsShort | Role::RopeFactorsLong => {
                self.rope_divisors = Some(weight.divisors(bytes)?);
            }
            Role::AttnNorm => block.attn_norm = weight.floats(bytes)?,
            Role::AttnQNorm => block.attn_q_norm = Some(weight.floats(bytes)?),
            Role::AttnKNorm => block.attn_k_norm = Some(weight.floats(bytes)?),
            Role::AttnQNormIn => block.attn_q_norm_in = Some(weight.floats(bytes)?),
            Role::AttnKNormIn => block.attn_k_norm_in = Some(weight.floats(bytes)?),
            Role::AttnVNormIn => block.attn_v_norm_in = Some(weight.floats(bytes)?),
            Role::AttnSubNorm | Role::AttnOutputNormIn => {
                block.attn_sub_norm = Some(weight.floats(bytes)?);
            }
            Role::FfnNorm => block.ffn_norm = weight.floats(bytes)?,
            Role::FfnGateNormIn => block.ffn_gate_norm_in = Some(weight.floats(bytes)?),
            Role::FfnUpNormIn => block.ffn_up_norm_in = Some(weight.floats(bytes)?),
            Role::FfnSubNorm | Role::FfnDownNormIn => {
                block.ffn_sub_norm = Some(weight.floats(bytes)?);
            }
            Role::AttnQ => matrix(&mut block.attn_q)?,
            Role::AttnK => matrix(&mut block.attn_k)?,
            Role::AttnV => matrix(&mut block.attn_v)?,
            Role::AttnOutput => matrix(&mut block.attn_output)?,
            Role::FfnGate => matrix(&mut block.ffn_gate)?,
            Role::FfnUp => matrix(&mut block.ffn_up)?,
            Role::FfnDown => matrix(&mut block.ffn_down)?,
        }
        Ok(())
    }
}
