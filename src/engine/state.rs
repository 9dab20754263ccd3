//! What changes while the model runs: activations, KV cache, the token in hand.

use super::{EngineOptions, MAX_BATCH_STEPS};
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Gpu, STEP_STRIDE, Step, Used};
use crate::kernels::{
    AttentionShape, FEW, MAX_SPLITS, Parts, Quantized, SamplingParams, stretches,
};
use crate::model::Config;

/// Tokens of a prompt that there is room for at once: enough to fill a large card with tiles. A slow card
/// is given fewer at a time, and a CPU always is.
const CHUNK: usize = 512;
const CHUNK_ON_CPU: usize = 64;

/// Positions in a part of the context that a decode step's attention is split into: a multiple of this. A
/// card's kernel takes in so many at once; a CPU may have more cores than there are heads.
const MIN_SPLIT: usize = 128;
const MIN_SPLIT_ON_CPU: usize = 64;

/// The same of a prefill step's, and how many parts there are at most: each takes memory for every token
/// of a chunk.
const MIN_PREFILL_SPLIT: usize = 256;
const MAX_PREFILL_SPLITS: usize = 4;

/// Bytes of KV cache that are taken unasked. A larger context is there for those who ask for it.
const MAX_CACHE: usize = 1 << 30;

/// Positions whose angles are computed and written at once.
const TURNS_AT_ONCE: usize = 4096;

/// Buffers that the plans read and write.
pub(super) struct State {
    /// Tokens the KV cache holds.
    pub(super) n_ctx: usize,
    /// Tokens in one prefill step.
    pub(super) chunk: usize,
    /// Tokens in one step of few, [`FEW`]; 0 where their logits, or their parts of attention, exceed a
    /// binding, or there is no room for so many.
    pub(super) few: usize,
    /// Positions in a part of the context for a decode step: a multiple of this.
    least_split: usize,
    /// Parts that a prefill step's attention is split into, at most.
    prefill_splits: usize,
    pub(super) attention: AttentionShape,
    /// Position and size of the step, and of those that were ordered with it.
    pub(super) step: Buffer<Step>,
    /// The step's tokens `[chunk]`; the sampler writes the next step's into the first.
    pub(super) tokens: Buffer<u32>,
    /// The residual stream `[chunk, n_embd]`.
    pub(super) x: Buffer<f32>,
    /// The normed stream, quantised `[chunk, n_embd]`.
    pub(super) h: Quantized,
    /// `[chunk, n_embd + 2 n_kv]`.
    pub(super) qkv: Buffer<f32>,
    /// Queries, turned by position and scaled `[chunk, n_embd]`.
    pub(super) q: Buffer<f32>,
    pub(super) parts: Parts,
    /// The gated activation `[chunk, n_ff]`.
    pub(super) ff: Buffer<f32>,
    /// The same, normed and quantised.
    pub(super) ff_q: Quantized,
    /// The last token's hidden state after the last norm `[n_embd]`.
    pub(super) last: Buffer<f32>,
    /// `[n_vocab]`.
    pub(super) logits: Buffer<f32>,
    /// The same of few tokens `[few, n_embd]` and `[few, n_vocab]`, and of each the best of the stretches of the
    /// vocabulary `[few, stretches]`.
    pub(super) few_last: Buffer<f32>,
    pub(super) few_logits: Buffer<f32>,
    pub(super) few_best: Buffer<[u32; 2]>,
    /// cos and sin of every position's angles `[n_ctx, head_dim / 2]`.
    pub(super) turns: Buffer<[f32; 2]>,
    /// Keys and values of each block, `[n_ctx, n_head_kv, head_dim]`.
    pub(super) cache: Vec<(Buffer<u32>, Buffer<u32>)>,
    pub(super) sampling: Buffer<SamplingParams>,
    pub(super) threshold: Buffer<f32>,
    pub(super) best: Buffer<[u32; 2]>,
    /// The tokens chosen last, in their order `[MAX_BATCH_STEPS]`.
    pub(super) sampled: Buffer<u32>,
}

impl State {
    pub(super) async fn allocate(
        gpu: &Gpu,
        config: &Config,
        options: &EngineOptions,
    ) -> Result<Self> {
        let attention = AttentionShape {
            n_head: config.n_head,
            n_head_kv: config.n_head_kv,
            head_dim: config.head_dim,
            kv_f16: !options.kv_f32,
        };
        let n_ctx = context(gpu, config, &attention, options.context)?;
        let most = if gpu.software { CHUNK_ON_CPU } else { CHUNK };
        let chunk = chunk(config, most.min(n_ctx), prefill_splits(gpu), gpu.max_binding as usize);
        let what = format!("the weights, a KV cache of {n_ctx} tokens and activations");
        let allocate = || Self::buffers(gpu, config, attention, n_ctx, chunk);
        let state = gpu.allocating(&what, allocate).await?;
        write_turns(gpu, config, &state.turns, n_ctx);
        Ok(state)
    }

    fn buffers(
        gpu: &Gpu,
        config: &Config,
        attention: AttentionShape,
        n_ctx: usize,
        chunk: usize,
    ) -> Self {
        let (n_embd, n_ff) = (config.n_embd, config.n_ff);
        // Of what has a row for each token of a chunk, a step uses as many as it has tokens.
        let rows = |label: &str, len: usize| {
            gpu.buffer(label, chunk * len).using(Used::Tokens(4 * len as u64))
        };
        let quantized = |label: &str, k: usize| Quantized {
            q: gpu.buffer(label, chunk * k / 4).using(Used::Tokens(k as u64)),
            scale: gpu.buffer(label, chunk).using(Used::Tokens(8)),
        };
        let prefill_splits = prefill_splits(gpu);
        let widest = config.n_vocab.max(MAX_SPLITS as usize * n_embd);
        let few_fit = FEW * widest * size_of::<f32>() <= gpu.max_binding as usize;
        let few = if chunk >= FEW && few_fit { FEW } else { 0 };
        let parts = (chunk * prefill_splits).max(MAX_SPLITS as usize * few.max(1));
        let split = |values: usize| Used::Splits(4 * values as u64);
        let turn = Used::Tokens(4 * config.head_dim as u64);
        let position = Used::Positions(attention.cache_bytes(1) as u64);
        let cache_words = attention.cache_bytes(n_ctx) / size_of::<u32>();
        Self {
            n_ctx,
            chunk,
            few,
            least_split: if gpu.software { MIN_SPLIT_ON_CPU } else { MIN_SPLIT },
            prefill_splits,
            attention,
            step: gpu
                .buffer("step", MAX_BATCH_STEPS * STEP_STRIDE)
                .using(Used::Fixed(size_of::<Step>() as u64)),
            tokens: gpu.buffer("tokens", chunk).using(Used::Tokens(4)),
            x: rows("x", n_embd),
            h: quantized("h", n_embd),
            qkv: rows("qkv", n_embd + 2 * n_kv(config)),
            q: rows("q", n_embd),
            parts: Parts {
                part: gpu.buffer("part", parts * n_embd).using(split(n_embd)),
                part_ml: gpu
                    .buffer("part_ml", parts * config.n_head)
                    .using(split(2 * config.n_head)),
            },
            ff: rows("ff", n_ff),
            ff_q: quantized("ff_q", n_ff),
            last: gpu.buffer("last", n_embd),
            logits: gpu.buffer("logits", config.n_vocab),
            few_last: gpu.buffer("few_last", few * n_embd).using(Used::Tokens(4 * n_embd as u64)),
            few_logits: gpu
                .buffer("few_logits", few * config.n_vocab)
                .using(Used::Tokens(4 * config.n_vocab as u64)),
            few_best: gpu
                .buffer("few_best", few * stretches(config.n_vocab))
                .using(Used::Tokens(8 * stretches(config.n_vocab) as u64)),
            turns: gpu.buffer("turns", n_ctx * config.head_dim / 2).using(turn),
            cache: (0..config.n_layer)
                .map(|_| ["k_cache", "v_cache"].map(|label| gpu.buffer(label, cache_words)))
                .map(|[k, v]| (k.using(position), v.using(position)))
                .collect(),
            sampling: gpu.buffer("sampling", 1),
            threshold: gpu.buffer("threshold", 1),
            best: gpu.buffer("best", stretches(config.n_vocab)),
            sampled: gpu.buffer("sampled", MAX_BATCH_STEPS),
        }
    }

    /// A step of `n_tokens` after `pos`. Attention is split over the context, because heads and tokens
    /// alone do not fill a card.
    pub(super) fn step(&self, pos: usize, n_tokens: usize) -> Step {
        if n_tokens == 1 {
            return self.few_step(pos, 1);
        }
        self.part_of_step(pos, n_tokens, pos + n_tokens)
    }

    /// A step of `n_tokens` after `pos` of those of a step that ends at `end`. It splits the context as
    /// that does: sums of floats depend on where they are parted.
    pub(super) fn part_of_step(&self, pos: usize, n_tokens: usize, end: usize) -> Step {
        Self::split_step(pos, n_tokens, end, (MIN_PREFILL_SPLIT, self.prefill_splits))
    }

    /// A step of one token or few, which splits the context alike for each of them, if there are no more
    /// than [`State::few_at`].
    pub(super) fn few_step(&self, pos: usize, n_tokens: usize) -> Step {
        Self::split_step(pos, n_tokens, pos + n_tokens, (self.least_split, MAX_SPLITS as usize))
    }

    /// The most tokens of a step of few after `pos`: up to where a token would split the context otherwise.
    pub(super) fn few_at(&self, pos: usize) -> usize {
        let alike = self.least_split * MAX_SPLITS as usize;
        self.few.min(alike - pos % alike)
    }

    fn split_step(pos: usize, n_tokens: usize, end: usize, (least, most): (usize, usize)) -> Step {
        let split_len = end.div_ceil(least * most) * least;
        Step {
            pos: pos as u32,
            n_tokens: n_tokens as u32,
            n_splits: (pos + n_tokens).div_ceil(split_len) as u32,
            split_len: split_len as u32,
        }
    }
}

/// Tokens that there is room for at once: `most`, or as many as the widest activation has in a binding.
fn chunk(config: &Config, most: usize, splits: usize, max_binding: usize) -> usize {
    let n_qkv = config.n_embd + 2 * n_kv(config);
    let widest = config.n_ff.max(n_qkv).max(config.n_embd * splits) * size_of::<f32>();
    most.min(max_binding / widest).max(1)
}

/// Tokens alone keep a CPU busy.
fn prefill_splits(gpu: &Gpu) -> usize {
    if gpu.software { 1 } else { MAX_PREFILL_SPLITS }
}

fn n_kv(config: &Config) -> usize {
    config.n_head_kv * config.head_dim
}

/// The context asked for, or the model's own, cut to what one binding holds.
fn context(
    gpu: &Gpu,
    config: &Config,
    attention: &AttentionShape,
    asked: Option<usize>,
) -> Result<usize> {
    let row = attention.cache_bytes(1).max(config.head_dim / 2 * size_of::<[f32; 2]>());
    let fits = gpu.max_binding as usize / row;
    let bad = |why: String| Err(Error::BadOption { name: "context".into(), why });
    match asked {
        None => {
            let unasked = MAX_CACHE / (2 * config.n_layer * attention.cache_bytes(1));
            Ok(config.n_ctx.min(fits).min(unasked.max(1)))
        }
        Some(0) => bad("must be at least 1".into()),
        Some(n) if n > config.n_ctx => {
            bad(format!("{n} tokens, but the model is made for {}", config.n_ctx))
        }
        Some(n) if n > fits => Err(Error::OutOfMemory {
            what: format!("a KV cache of {n} tokens in one layer"),
            needed: (n * row) as u64,
            granted: gpu.max_binding,
        }),
        Some(n) => Ok(n),
    }
}

/// cos and sin of `pos * base^(-2i / head_dim)`, in f64: a GPU's own are far off at large angles.
fn write_turns(gpu: &Gpu, config: &Config, turns: &Buffer<[f32; 2]>, n_ctx: usize) {
    let half = config.head_dim / 2;
    let frequency =
        |i: usize| f64::from(config.rope_freq_base).powf(-2.0 * i as f64 / config.head_dim as f64);
    let frequencies: Vec<f64> = (0..half).map(frequency).collect();
    // In pieces: a long context's table is too large for this side's memory.
    for first in (0..n_ctx).step_by(TURNS_AT_ONCE) {
        let positions = first..(first + TURNS_AT_ONCE).min(n_ctx);
        let piece: Vec<[f32; 2]> = positions
            .flat_map(|pos| {
                frequencies.iter().map(move |frequency| {
                    let (sin, cos) = (pos as f64 * frequency).sin_cos();
                    [cos as f32, sin as f32]
                })
            })
            .collect();
        gpu.write(turns, first * half, &piece);
    }
}
