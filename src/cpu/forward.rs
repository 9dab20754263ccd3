//! The model: tokens to residual streams to logits.

use std::mem::take;

use super::adapters::{Deltas, Room};
use super::attention::{Attention, SCORES};
use super::cache::Cache;
use super::input::Input;
use super::machine::InstructionSet;
use super::ops;
use super::pool::{Pool, each, each_with_room};
use super::product::{Matrix, Products, gate, multiply, multiply_gated};
use super::weights::Weights;
use crate::blocks::block_type;
use crate::compute::{About, Backend, Site};
use crate::error::Result;
use crate::gguf::TensorType;
use crate::host::{Model, Row};
use crate::model::{Adapters, Angles, Config, Role};

/// A model in memory.
pub(super) struct Cpu {
    pub(super) config: Config,
    pub(super) weights: Weights,
    pub(super) cache: Cache,
    pub(super) angles: Angles,
    pub(super) pool: Box<dyn Pool>,
    /// The instruction set of attention and of the activation.
    pub(super) set: InstructionSet,
    /// The fastest of this machine, or the one that was asked for. Kernels of it that fail their test are not
    /// used.
    pub(super) best: InstructionSet,
    /// The instruction sets that may be used, the fastest first.
    pub(super) sets: Vec<InstructionSet>,
    /// The adapters that are applied, if there are any.
    pub(super) deltas: Option<Deltas>,
    /// The types of the matrices, with their instruction sets.
    pub(super) kernels: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) buffers: Buffers,
}

/// Memory that every step uses.
#[derive(Default)]
pub(super) struct Buffers {
    tokens: Vec<Token>,
    /// The input of a product for each token.
    inputs: Vec<Input>,
    q: Products,
    k: Products,
    v: Products,
    gates: Products,
    out: Products,
    /// For what adapters add.
    room: Room,
    /// Room for the scores of a token, for each thread.
    scores: Vec<Vec<f32>>,
}

/// The values of a token.
#[derive(Default)]
struct Token {
    /// Its position in the KV cache, and those before it in its sequence.
    first: usize,
    pos: usize,
    /// cos and sin of each pair's angle.
    rope: Vec<[f32; 2]>,
    /// The residual stream.
    x: Vec<f32>,
    /// The results of a norm, or of a product.
    h: Vec<f32>,
    /// `h` after the norm of one matrix.
    normed: Vec<f32>,
    q: Vec<f32>,
    /// The outputs of attention.
    attn: Vec<f32>,
    /// The rows of the cache: keys and values.
    rows: [Vec<u8>; 2],
}

impl Buffers {
    /// For so many threads, and sequences of up to `n_ctx` tokens.
    pub(super) fn new(threads: usize, n_ctx: usize) -> Self {
        Self { scores: vec![vec![0.0; SCORES * n_ctx]; threads], ..Self::default() }
    }

    /// Bytes of [`Buffers::new`].
    pub(super) fn bytes(threads: usize, n_ctx: usize) -> u64 {
        4 * SCORES as u64 * n_ctx as u64 * threads as u64
    }
}

impl Cpu {
    /// Looks up the tokens.
    fn embed(&mut self, rows: &[Row]) {
        let Self { buffers, weights, angles, config, deltas, .. } = self;
        buffers.tokens.resize_with(rows.len(), Token::default);
        buffers.inputs.resize_with(rows.len(), Input::default);
        for (token, row) in buffers.tokens.iter_mut().zip(rows) {
            (token.first, token.pos) = (row.first, row.pos);
            token.rope.clear();
            let angles = angles.at(row.pos).map(|pair| pair.map(|value| value as f32));
            token.rope.extend(angles);
            token.x = floats(&weights.token_embd, row.id as usize);
            if let Some(deltas) = deltas {
                deltas.add_to_embedding(row.id as usize, &mut token.x);
            }
            token.x.iter_mut().for_each(|x| *x *= config.embedding_scale);
        }
    }

    /// Computes tokens as far as `site` of block `block`.
    fn compute(&mut self, rows: &[Row], block: usize, site: Site) {
        self.embed(rows);
        (0..block).for_each(|n| self.block(n, Site::Down));
        self.block(block, site);
    }

    /// Computes a block for all tokens, as far as `site`.
    fn block(&mut self, n: usize, site: Site) {
        let Self { config, weights, cache, pool, buffers, set, deltas, .. } = self;
        let Buffers { tokens, inputs, q, k, v, gates, out, room, scores } = buffers;
        let (block, pool, set) = (&weights.blocks[n], &**pool, *set);
        let Config { n_embd, n_head, n_head_kv, head_dim, eps, residual_scale, .. } = *config;
        let pairs = config.architecture.rope_pairs;

        each_with_input(pool, tokens, inputs, |_, token, input| {
            token.h.resize(n_embd, 0.0);
            ops::rms_norm(&token.x, &block.attn_norm, eps, &mut token.h);
            if block.attn_norms_in.is_none() {
                block.attn_q.prepare(input, &token.h);
            }
        });
        let matrices = [&block.attn_q, &block.attn_k, &block.attn_v];
        let products = [&mut *q, &mut *k, &mut *v];
        match &block.attn_norms_in {
            None => multiply(pool, matrices, inputs, products),
            Some(norms) => {
                for ((matrix, norm), products) in matrices.into_iter().zip(norms).zip(products) {
                    multiply_normed(pool, (matrix, norm, eps), (tokens, inputs), products);
                }
            }
        }
        if let Some(deltas) = deltas {
            let roles = [Role::AttnQ, Role::AttnK, Role::AttnV];
            deltas.add(pool, (n, roles), |t| &tokens[t].h, [&mut *q, &mut *k, &mut *v], room);
        }

        let shape = cache.shape;
        each(pool, tokens, |index, token| {
            q.take(index, &mut token.q);
            if let Some(norm) = &block.attn_q_norm {
                ops::rms_norm_in_place(&mut token.q, norm, eps);
            }
            ops::rotate(&mut token.q, &token.rope, pairs);
            k.take(index, &mut token.h);
            if let Some(norm) = &block.attn_k_norm {
                ops::rms_norm_in_place(&mut token.h, norm, eps);
            }
            ops::rotate(&mut token.h, &token.rope, pairs);
            token.rows.iter_mut().for_each(|row| row.resize(shape.row_bytes(), 0));
            shape.write_row(&token.h, &mut token.rows[0]);
            v.take(index, &mut token.h);
            shape.write_row(&token.h, &mut token.rows[1]);
        });
        for token in tokens.iter() {
            for (half, row) in token.rows.iter().enumerate() {
                cache.row_mut(2 * n + half, token.first + token.pos).copy_from_slice(row);
            }
        }

        if site == Site::Qkv {
            return;
        }
        let (keys, values) = (cache.rows(2 * n), cache.rows(2 * n + 1));
        let heads = n_head / n_head_kv * head_dim;
        let mut groups = Vec::with_capacity(tokens.len() * n_head_kv);
        for token in tokens.iter_mut() {
            let Token { first, pos, q, attn, .. } = token;
            attn.resize(n_head * head_dim, 0.0);
            let rows = *first * shape.row_bytes()..(*first + *pos + 1) * shape.row_bytes();
            for (head_kv, out) in attn.chunks_exact_mut(heads).enumerate() {
                groups.push((rows.clone(), head_kv, &q[head_kv * heads..][..heads], out));
            }
        }
        each_with_room(pool, scores, &mut groups, |scores, (rows, head_kv, q, out)| {
            let (keys, values) = (&keys[rows.clone()], &values[rows.clone()]);
            set.run(Attention { shape, head_kv: *head_kv, keys, values, q, scores, out });
        });

        each_with_input(pool, tokens, inputs, |_, token, input| {
            if let Some(norm) = &block.attn_sub_norm {
                ops::rms_norm_in_place(&mut token.attn, norm, eps);
            }
            block.attn_output.prepare(input, &token.attn);
        });
        multiply(pool, [&block.attn_output], inputs, [&mut *out]);
        if let Some(deltas) = deltas {
            let roles = [Role::AttnOutput];
            deltas.add(pool, (n, roles), |t| &tokens[t].attn, [&mut *out], room);
        }

        each_with_input(pool, tokens, inputs, |index, token, input| {
            out.take(index, &mut token.h);
            ops::add(&mut token.x, &token.h, residual_scale);
            ops::rms_norm(&token.x, &block.ffn_norm, eps, &mut token.h);
            if block.ffn_norms_in.is_none() {
                block.ffn_gate.prepare(input, &token.h);
            }
        });
        if site == Site::Output {
            return;
        }
        let activation = config.architecture.activation;
        match (block.ffn_norms_in.as_deref(), &deltas) {
            (Some([of_gate, of_up]), _) => {
                multiply_normed(pool, (&block.ffn_gate, of_gate, eps), (tokens, inputs), gates);
                multiply_normed(pool, (&block.ffn_up, of_up, eps), (tokens, inputs), out);
                gate(pool, gates, (activation, set), out);
            }
            (_, Some(deltas)) => {
                let matrices = [&block.ffn_gate, &block.ffn_up];
                multiply(pool, matrices, inputs, [&mut *gates, &mut *out]);
                let roles = [Role::FfnGate, Role::FfnUp];
                let products = [&mut *gates, &mut *out];
                deltas.add(pool, (n, roles), |t| &tokens[t].h, products, room);
                gate(pool, gates, (activation, set), out);
            }
            _ => {
                let matrices = [&block.ffn_gate, &block.ffn_up];
                multiply_gated(pool, matrices, (activation, set), inputs, [&mut *gates, &mut *out]);
            }
        }
        if site == Site::GateUp {
            return;
        }

        each_with_input(pool, tokens, inputs, |index, token, input| {
            out.take(index, &mut token.h);
            if let Some(norm) = &block.ffn_sub_norm {
                ops::rms_norm_in_place(&mut token.h, norm, eps);
            }
            block.ffn_down.prepare(input, &token.h);
        });
        multiply(pool, [&block.ffn_down], inputs, [&mut *out]);
        if let Some(deltas) = deltas {
            let roles = [Role::FfnDown];
            deltas.add(pool, (n, roles), |t| &tokens[t].h, [&mut *out], room);
        }
        each(pool, tokens, |index, token| {
            out.take(index, &mut token.h);
            ops::add(&mut token.x, &token.h, residual_scale);
        });
    }

    fn lm_head(&self) -> &Matrix {
        self.weights.lm_head()
    }

    /// The last norm of a residual stream.
    fn last_norm(&self) -> impl Fn(&[f32]) -> Vec<f32> + Sync + use<'_> {
        let (weight, eps) = (&self.weights.output_norm, self.config.eps);
        move |x| {
            let mut hidden = vec![0.0; x.len()];
            ops::rms_norm(x, weight, eps, &mut hidden);
            hidden
        }
    }

    /// The input of the LM head after each residual stream.
    fn inputs_of_head(&self, streams: &[Vec<f32>]) -> Vec<Input> {
        let (lm_head, norm) = (self.lm_head(), self.last_norm());
        let mut inputs = vec![Input::default(); streams.len()];
        each(&*self.pool, &mut inputs, |index, input| {
            lm_head.prepare(input, &norm(&streams[index]));
        });
        inputs
    }

    /// Multiplies the products of the LM head.
    fn logit_factor(&self) -> f32 {
        1.0 / self.config.logit_scale
    }

    /// Every matrix of the blocks.
    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.weights.blocks.iter().flat_map(|block| {
            [
                &block.attn_q,
                &block.attn_k,
                &block.attn_v,
                &block.attn_output,
                &block.ffn_gate,
                &block.ffn_up,
                &block.ffn_down,
            ]
        })
    }
}

/// Calls `work` with each token and its input.
fn each_with_input(
    pool: &dyn Pool,
    tokens: &mut [Token],
    inputs: &mut [Input],
    work: impl Fn(usize, &mut Token, &mut Input) + Sync,
) {
    let mut both: Vec<_> = tokens.iter_mut().zip(inputs).collect();
    each(pool, &mut both, |index, (token, input)| work(index, token, input));
}

/// Multiplies each token's `h`, normed, with a matrix.
fn multiply_normed(
    pool: &dyn Pool,
    (matrix, norm, eps): (&Matrix, &[f32], f32),
    (tokens, inputs): (&mut [Token], &mut [Input]),
    products: &mut Products,
) {
    each_with_input(pool, tokens, inputs, |_, Token { h, normed, .. }, input| {
        normed.resize(h.len(), 0.0);
        ops::rms_norm(h, norm, eps, normed);
        matrix.prepare(input, normed);
    });
    multiply(pool, [matrix], inputs, [products]);
}

/// The values of a row of a matrix.
fn floats(matrix: &Matrix, row: usize) -> Vec<f32> {
    let bytes = &*matrix.row(row);
    let halves = || bytes.as_chunks::<2>().0.iter();
    match matrix.kernel.ty {
        TensorType::F16 => halves().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect(),
        TensorType::Bf16 => halves().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect(),
        TensorType::F32 => {
            bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        }
        // The values were checked when they were loaded.
        ty => block_type(ty).and_then(|block| block.values(bytes).ok()).unwrap_or_default(),
    }
}

impl Model for Cpu {
    fn config(&self) -> &Config {
        &self.config
    }

    fn about(&self) -> About {
        let weights: usize = self.matrices().map(|matrix| matrix.bytes.len()).sum();
        let of_tokens = self.weights.token_embd.bytes.len()
            + self.weights.output.as_ref().map_or(0, |output| output.bytes.len());
        let threads = self.pool.threads();
        let s = if threads == 1 { "" } else { "s" };
        About {
            backend: Backend::Cpu,
            threads: Some(threads),
            adapter: format!("the CPU with {}, {threads} thread{s}", self.best.name()),
            kv: self.cache.shape.kv,
            gpu_bytes: (weights + of_tokens + self.cache.bytes()) as u64,
            streamed_layers: 0,
            kernels: self.kernels.clone(),
            sample: self.weights.sample,
            notes: self.notes.clone(),
            remarks: Vec::new(),
            dispatches_per_token: 0,
        }
    }

    fn values(&mut self, rows: &[Row], block: usize, site: Site) -> Vec<Vec<f32>> {
        self.compute(rows, block, site);
        let Buffers { tokens, q, k, v, out, .. } = &mut self.buffers;
        let value = |(index, token): (usize, &mut Token)| match site {
            Site::Qkv => [&*q, k, v]
                .iter()
                .flat_map(|part| part.of_token(index))
                .flatten()
                .copied()
                .collect(),
            Site::GateUp => out.of_token(index).flatten().copied().collect(),
            Site::Output | Site::Down => std::mem::take(&mut token.x),
        };
        tokens.iter_mut().enumerate().map(value).collect()
    }

    fn queries(&mut self, rows: &[Row], block: usize) -> Vec<Vec<f32>> {
        self.compute(rows, block, Site::Qkv);
        let per = 1.0 / (self.config.head_dim as f32).sqrt();
        let scaled = |token: &Token| token.q.iter().map(|q| q * per).collect();
        self.buffers.tokens.iter().map(scaled).collect()
    }

    fn hidden(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let norm = self.last_norm();
        streams.iter().map(|x| norm(x)).collect()
    }

    fn logits(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let mut room = take(&mut self.buffers.room);
        let lm_head = self.lm_head();
        let inputs = self.inputs_of_head(streams);
        let mut products = Products::default();
        multiply(&*self.pool, [lm_head], &inputs, [&mut products]);
        if let Some(deltas) = &self.deltas {
            let norm = self.last_norm();
            let hidden: Vec<Vec<f32>> = streams.iter().map(|x| norm(x)).collect();
            deltas.add_to_logits(&*self.pool, |index| &hidden[index], &mut products, &mut room);
        }
        let per = self.logit_factor();
        let logits = (0..streams.len()).map(|token| {
            let mut logits = Vec::with_capacity(lm_head.rows);
            products.take(token, &mut logits);
            if per != 1.0 {
                logits.iter_mut().for_each(|logit| *logit *= per);
            }
            logits
        });
        let logits = logits.collect();
        self.buffers.room = room;
        logits
    }

    fn best(&mut self, streams: &[Vec<f32>]) -> Option<Vec<u32>> {
        let lm_head = self.lm_head();
        lm_head.split.as_ref()?;
        // With a pair on the LM head, its upper bytes do not say which tokens may be the best.
        if self.deltas.as_ref().is_some_and(Deltas::changes_head) {
            return None;
        }
        lm_head.best_rows(&*self.pool, &self.inputs_of_head(streams), self.logit_factor())
    }

    fn set_adapters(&mut self, adapters: &Adapters) -> Result<()> {
        // The old ones make room first.
        self.deltas = None;
        self.deltas = Deltas::new(adapters, &self.config, &self.sets)?;
        Ok(())
    }

    fn position_bytes(&self) -> usize {
        self.cache.shape.row_bytes()
    }

    fn grow(&mut self, positions: usize) -> bool {
        self.cache.grow(positions)
    }

    fn copy(&mut self, from: usize, to: usize, n: usize) {
        self.cache.copy(from, to, n);
    }

    fn read(&mut self, buffer: usize, first: usize, n: usize) -> Option<Vec<u32>> {
        self.cache.read(buffer, first, n)
    }

    fn write(&mut self, buffer: usize, first: usize, bytes: &[u8]) {
        self.cache.write(buffer, first, bytes);
    }

    fn layer_bytes(&self, pos: usize) -> u64 {
        let weights: usize = self.matrices().map(|matrix| matrix.bytes.len()).sum();
        let cache = 2 * self.config.n_layer * (pos + 1) * self.cache.shape.row_bytes();
        (weights + self.weights.token_embd.row_bytes() + cache) as u64
    }

    fn head_bytes(&self) -> u64 {
        self.lm_head().greedy_bytes() as u64
    }

    fn bandwidth(&mut self) -> Option<f64> {
        let all: Vec<&[u8]> =
            self.matrices().chain([self.lm_head()]).map(|matrix| &*matrix.bytes).collect();
        super::bandwidth::measure(&*self.pool, self.best, &all)
    }
}
