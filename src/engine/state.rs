//! The memory that changes while the model runs: activations, the KV cache, the next token.

use super::adapters::Deltas;
use super::kv_cache::Cache;
use super::weights::{Vocabulary, Weights};
use crate::compute::{EngineOptions, MAX_SPANS};
use crate::error::{Error, Result};
use crate::gpu::{Allocation, Buffer, Gpu, Row, Step, Tuning, Used};
use crate::gpu::{MAX_BATCH_STEPS, MAX_ROWS};
use crate::kernels::{
    ADJUSTED_WORDS, Adjustments, AttentionShape, BestOfBlock, FEW, Likeliest, MAX_SPLITS,
    MIN_LANES, N_RECORDS, Partials, Penalties, Quantized, QuantizedGroups, Record, SHORT,
    SHORT_SPLIT, SamplingParams, Selection, Stream, decoded_positions, vocab_blocks,
};
use crate::model::{Angles, Config};
use crate::sampling::Mask;

/// Positions of a prefill step's split are a multiple of this.
const MIN_PREFILL_SPLIT: usize = 256;

/// The same of a step of few tokens after a long context: a card would have too little to do with few
/// splits. It is the number of positions that the kernel takes at a time.
const MIN_FEW_SPLIT: usize = 64;

/// A context is long if it has at least this many times the tokens of the step.
const LONG: usize = 4;

/// Tokens times splits that keep a large card busy.
const BUSY: usize = 2048;

/// The most values of attention's splits that a product merges. Each of its workgroups reads all of
/// them. On an NVIDIA H200, 8 splits of 4096 values are merged faster than 12. With splits of 2560
/// values it is the other way round.
const MERGED_VALUES: usize = 8 * 4096;

/// Bytes of KV cache that are taken by default, but at most a quarter of the memory that the caller allows. A
/// caller who wants a larger context asks for it.
const MAX_CACHE: usize = 1 << 30;

/// Positions of the RoPE table that are computed and written at a time.
const POSITIONS_AT_ONCE: usize = 4096;

/// In a buffer of all slots, each slot begins at a multiple of this, because bindings have to.
const SLOT_BYTES: usize = 256;

/// How the matrices of a model take their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inputs {
    /// int8 with a scale for each token. I2_S models were trained with this.
    Rows,
    /// int8 with a scale for every 32 values.
    Groups,
    /// f32.
    Floats,
}

/// How the matrices of the blocks take their inputs, and how the LM head takes its input.
#[derive(Clone, Copy)]
struct AllInputs {
    blocks: Inputs,
    lm_head: Inputs,
    /// Whether the residual stream of a single token is passed on as [`Stream`].
    stream: bool,
}

impl AllInputs {
    fn new(tuning: &Tuning, weights: &Weights, options: &EngineOptions) -> Self {
        let packed = if options.float_activations { Inputs::Floats } else { Inputs::Groups };
        let ternary = weights.blocks.iter().any(|block| block.attn_qkv.ternary().is_some());
        let blocks = if ternary { Inputs::Rows } else { packed };
        Self {
            blocks,
            stream: tuning.fused
                && tuning.lanes >= MIN_LANES
                && blocks == Inputs::Groups
                && weights.are_streamed(),
            lm_head: if weights.lm_head().dense().is_some() { Inputs::Floats } else { packed },
        }
    }
}

/// Buffers for the inputs of matrices, `[n_tokens, k]`.
pub(super) enum Activations {
    /// For [`Inputs::Rows`].
    Rows(Quantized),
    /// For [`Inputs::Groups`].
    Groups(QuantizedGroups),
    /// For [`Inputs::Floats`].
    Floats(Buffer<f32>),
}

/// Buffers for products whose matrices do not share their input.
pub(super) struct Apart {
    /// The norm of the residual stream `[chunk, n_embd]`, before the norms of the matrices.
    pub(super) normed: Buffer<f32>,
    /// The products of gate and up `[chunk, 2 n_ff]`.
    pub(super) gate_up: Buffer<f32>,
}

/// The facts from which the sizes of a state follow.
struct Sizes<'a> {
    config: &'a Config,
    inputs: AllInputs,
    shape: AttentionShape,
    n_ctx: usize,
    chunk: usize,
    /// The embedding, if it is not on the GPU.
    fetched: Option<&'a Vocabulary>,
}

/// Rows of an embedding that is not on the GPU.
pub(super) struct Fetched {
    /// A row for the token of each slot, and for each token of a chunk.
    pub(super) embd: Vocabulary,
    /// The row of each index in [`State::tokens`].
    pub(super) ids: Buffer<u32>,
}

/// The buffers that the plans read and write.
///
/// `qkv`, the sums of `partials`, `ff`, `hidden`, `few_logits`, `adjusted` and `adjusted_upper` share their
/// memory. Each is written after the one before it was read for the last time. In a step of several
/// sequences `adjusted` overwrites the first row of `few_logits`, but by then that row was copied
/// to `logits`.
pub(super) struct State {
    /// The most tokens of a sequence.
    pub(super) n_ctx: usize,
    /// The most tokens of one prefill step.
    pub(super) chunk: usize,
    /// The most tokens of one draft pass: [`FEW`], or 0 if a binding does not hold their logits or
    /// partials, or if a chunk is smaller.
    pub(super) few: usize,
    /// Positions of a decode step's split are a multiple of this.
    min_split: usize,
    /// The most splits of a decode step.
    max_splits: usize,
    /// The most splits of attention in a prefill step, but for one of few tokens.
    max_prefill_splits: usize,
    /// The most splits of a prefill step of few tokens after a long context, times its tokens. 0: no more
    /// than of others.
    few_splits: usize,
    /// The step, and the steps that are submitted with it.
    pub(super) step: Buffer<Step>,
    /// The token that was chosen last in each slot, which the next step embeds. Then room for the
    /// uncertain tokens before a draft pass. Then the tokens of a chunk or of a draft pass
    /// `[chunk]`.
    pub(super) tokens: Buffer<u32>,
    /// The rows of the embedding for a step, if it is not on the GPU.
    pub(super) fetched: Option<Fetched>,
    /// The residual stream `[chunk, n_embd]`.
    pub(super) x: Buffer<f32>,
    /// The inputs of all matrices but down. These are the normed stream `[chunk, n_embd]` and the
    /// outputs of attention `[chunk, n_q]`.
    pub(super) h: Activations,
    /// The products of queries, keys and values `[chunk, n_q + 2 n_kv]`.
    pub(super) qkv: Buffer<f32>,
    /// Queries, rotated by position and scaled `[chunk, n_q]`. If attention norms them, in a step
    /// of one token: the products of queries, key and value. Later, the outputs of attention,
    /// unless they are quantised at once.
    pub(super) q: Buffer<f32>,
    pub(super) partials: Partials,
    /// The gated activation `[chunk, n_ff]`.
    pub(super) ff: Buffer<f32>,
    /// The hidden state of each token of a pass `[chunk, n_embd]`.
    pub(super) hidden: Buffer<f32>,
    /// The gated activation, as the input of down.
    pub(super) ff_h: Activations,
    /// If each matrix norms its input by itself.
    pub(super) apart: Option<Apart>,
    /// The adapters that are applied, if there are any.
    pub(super) deltas: Option<Deltas>,
    /// The residual stream of one token as the input of the next product, if all matrices suit the
    /// kernels of the stream.
    pub(super) stream: Option<Stream>,
    /// The last token's hidden state after the last norm `[n_embd]`.
    pub(super) last: Buffer<f32>,
    /// The same hidden state, as the input of a packed LM head `[max(1, few), n_embd]`.
    pub(super) last_q: Option<QuantizedGroups>,
    /// The logits `[n_vocab]`. Greedy decoding needs no full logits, and keeps the approximate ones
    /// here.
    pub(super) logits: Buffer<f32>,
    /// The hidden state of each token of a draft pass `[max(1, few), n_embd]`.
    pub(super) few_last: Buffer<f32>,
    /// The logits after each token of a draft pass `[max(1, few), n_vocab]`.
    pub(super) few_logits: Buffer<f32>,
    /// The best token of each vocabulary block, for each token of a draft pass
    /// `[few, vocab_blocks]`.
    pub(super) few_best: Buffer<BestOfBlock>,
    /// The tokens to score, which come after those of a pass `[max(1, few)]`.
    pub(super) scored: Buffer<u32>,
    /// cos and sin of every position's angles `[n_ctx, head_dim / 2]`.
    pub(super) rope_table: Buffer<[f32; 2]>,
    pub(super) cache: Cache,
    /// The memory that `qkv` and others share. Any later step may overwrite it.
    pub(super) scratch: Buffer<f32>,
    pub(super) selection: Selection,
    /// The logits with a sequence's biases and penalties `[n_vocab]`.
    pub(super) adjusted: Buffer<f32>,
    /// The approximate logits with biases and penalties `[n_vocab, ADJUSTED_WORDS]`.
    pub(super) adjusted_upper: Buffer<f32>,
    pub(super) likeliest: Likeliest,
    pub(super) best: Buffer<[u32; 2]>,
    /// The memory of [`Slot::sampled`] of all slots. The slots are [`SLOT_WORDS`] apart.
    pub(super) sampled: Buffer<u32>,
    /// The memory of [`Slot::records`] of all slots, one slot after the other.
    pub(super) records: Buffer<Record>,
    /// A slot for each sequence that a step can have.
    pub(super) slots: Vec<Slot>,
}

/// The number of words from the beginning of a slot to that of the next one.
pub(super) const SLOT_WORDS: usize = SLOT_BYTES / size_of::<u32>();

/// The buffers of a sequence that is being generated, for choosing its tokens.
pub(super) struct Slot {
    pub(super) sampling: Buffer<SamplingParams>,
    pub(super) penalties: Buffer<Penalties>,
    /// How often the sequence has each token, for the penalties `[n_vocab]`.
    pub(super) counts: Buffer<u32>,
    /// The biases, which are added to the logits of each token `[n_vocab]`.
    pub(super) biases: Buffer<f32>,
    /// The tokens that may be chosen: a mask for a step, or for each token of a draft pass
    /// `[max(1, few), mask_words]`.
    pub(super) masks: Buffer<u32>,
    /// The log-probabilities of the tokens that were chosen last `[N_RECORDS]`.
    pub(super) records: Buffer<Record>,
    /// The token that was chosen last `[1]`.
    pub(super) token: Buffer<u32>,
    /// The tokens that were chosen last, in their order `[MAX_BATCH_STEPS]`.
    pub(super) sampled: Buffer<u32>,
}

impl Slot {
    pub(super) fn adjustments(&self) -> Adjustments<'_> {
        let Self { penalties, counts, biases, masks, .. } = self;
        Adjustments { penalties, counts, biases, masks }
    }
}

impl State {
    /// Errors: `out-of-memory`, `bad-option` (context, kv).
    pub(super) async fn allocate(
        gpu: &Gpu,
        config: &Config,
        weights: &Weights,
        options: &EngineOptions,
    ) -> Result<Self> {
        let sizes = Self::sizes(gpu, config, weights, options)?;
        let n_ctx = sizes.n_ctx;
        let what = format!("the weights, a KV cache of {n_ctx} tokens and activations");
        let state = gpu.allocating(&what, |allocation| Self::buffers(allocation, &sizes)).await?;
        if let Some(Fetched { embd, ids }) = &state.fetched {
            let rows = state.rows_of_tokens();
            gpu.write(ids, 0, &rows);
            gpu.fetch_rows(&state.tokens, rows, weights.token_embd.planes(embd));
        }
        Ok(state)
    }

    /// A stand-in for a state, which no kernel may use, and the bytes that the state would take.
    ///
    /// Errors: as [`State::allocate`].
    pub(super) fn measure(
        gpu: &Gpu,
        config: &Config,
        weights: &Weights,
        options: &EngineOptions,
    ) -> Result<(Self, u64)> {
        let sizes = Self::sizes(gpu, config, weights, options)?;
        Ok(gpu.measuring(false, |allocation| Self::buffers(allocation, &sizes)))
    }

    fn sizes<'a>(
        gpu: &Gpu,
        config: &'a Config,
        weights: &'a Weights,
        options: &EngineOptions,
    ) -> Result<Sizes<'a>> {
        let shape = AttentionShape {
            n_head: config.n_head,
            n_head_kv: config.n_head_kv,
            head_dim: config.head_dim,
            kv: options.kv,
        };
        if !shape.fits_rows() {
            let why =
                format!("int8 takes heads of a multiple of 16 values, not of {}", shape.head_dim);
            return Err(Error::BadOption { name: "kv".into(), why });
        }
        let inputs = AllInputs::new(&gpu.tuning, weights, options);
        let n_ctx = context(gpu, config, &shape, options.context)?;
        let chunk = chunk(gpu, config, n_ctx);
        let fetched = weights.fetches_rows.then_some(&weights.token_embd);
        Ok(Sizes { config, inputs, shape, n_ctx, chunk, fetched })
    }

    fn buffers(allocation: &mut Allocation<'_>, sizes: &Sizes<'_>) -> Self {
        let gpu = allocation.gpu();
        let Sizes { config, inputs, shape, n_ctx, chunk, fetched } = *sizes;
        let min_split = gpu.tuning.min_split.min(decoded_positions(&shape));
        let max_prefill_splits = gpu.tuning.max_prefill_splits;
        let (n_embd, n_ff, n_vocab) = (config.n_embd, config.n_ff, config.n_vocab);
        let n_q = config.n_embd_q();
        // A short sequence may have four splits, for any width.
        let max_splits = (MERGED_VALUES / n_q).clamp(SHORT / SHORT_SPLIT, MAX_SPLITS as usize);
        let widest = n_vocab.max(max_splits * n_q);
        let few_fit = FEW * widest * size_of::<f32>() <= gpu.max_binding as usize;
        let few = if chunk >= FEW && few_fit { FEW } else { 0 };
        let splits = (chunk * max_prefill_splits).max(max_splits * few.max(1));
        let blocks = vocab_blocks(n_vocab);
        // If a buffer has a row for each token, a step uses as many rows as it has tokens.
        let rows = |len: usize| Used::Tokens(4 * len as u64);
        let split = |values: usize| Used::Splits(4 * values as u64);
        let angles = Used::Tokens(4 * config.head_dim as u64);

        let a = allocation;
        let n_qkv = n_qkv(config);
        let of_vocab = few.max(ADJUSTED_WORDS) * n_vocab;
        let scratch = [n_qkv, n_ff, n_embd].map(|len| chunk * len);
        let scratch = scratch.into_iter().chain([splits * n_q, of_vocab]);
        let scratch = a.buffer::<f32>("scratch", scratch.max().unwrap_or(0));
        let n_slots = few.max(1);
        let tokens = a.buffer("tokens", (n_slots + 1) * SLOT_WORDS + chunk);
        let sampled = a.buffer("sampled", n_slots * SLOT_WORDS);
        let records = a.buffer("records", n_slots * N_RECORDS);
        let slots = slots(a, n_vocab, [&tokens, &sampled], &records);
        Self {
            n_ctx,
            chunk,
            few,
            min_split,
            max_splits,
            max_prefill_splits,
            few_splits: if max_prefill_splits > 1 { BUSY.min(splits) } else { 0 },
            step: a
                .buffer("step", (MAX_BATCH_STEPS * (1 + FEW)).max(1 + MAX_SPANS.div_ceil(MAX_ROWS)))
                .using(Used::Fixed(size_of::<Step>() as u64)),
            fetched: fetched.map(|embedding| Fetched {
                embd: embedding.for_rows(a, n_slots + chunk),
                ids: a.buffer("rows_of_tokens", tokens.len()).using(Used::Tokens(4)),
            }),
            tokens: tokens.using(Used::Tokens(4)),
            x: a.buffer("x", chunk * n_embd).using(rows(n_embd)),
            h: Activations::allocate(a, "h", inputs.blocks, [chunk, n_embd.max(n_q)]),
            qkv: scratch.first(chunk * n_qkv).using(rows(n_qkv)),
            q: a.buffer("q", chunk * n_q).using(rows(n_q)),
            partials: Partials {
                shape,
                sums: scratch.first(splits * n_q).using(split(n_q)),
                max_total: a
                    .buffer("partial_max_total", splits * config.n_head)
                    .using(split(2 * config.n_head)),
            },
            ff: scratch.first(chunk * n_ff).using(rows(n_ff)),
            hidden: scratch.first(chunk * n_embd).using(rows(n_embd)),
            ff_h: Activations::allocate(a, "ff_h", inputs.blocks, [chunk, n_ff]),
            apart: config.architecture.norms_inputs().then(|| Apart {
                normed: a.buffer("normed", chunk * n_embd).using(rows(n_embd)),
                gate_up: a.buffer("gate_up", chunk * 2 * n_ff).using(rows(2 * n_ff)),
            }),
            deltas: None,
            stream: inputs
                .stream
                .then(|| Stream { words: a.buffer("stream", Stream::words(n_embd)) }),
            last: a.buffer("last", n_embd),
            last_q: (inputs.lm_head == Inputs::Groups)
                .then(|| quantized_groups(a, "last_q", [few.max(1), n_embd])),
            logits: a.buffer("logits", n_vocab),
            few_last: a.buffer("few_last", n_slots * n_embd).using(rows(n_embd)),
            few_logits: scratch.first(n_slots * n_vocab).using(rows(n_vocab)),
            few_best: a.buffer("few_best", few * blocks).using(rows(3 * blocks)),
            scored: a.buffer("scored", n_slots),
            rope_table: a.buffer("rope_table", n_ctx * config.head_dim / 2).using(angles),
            cache: Cache::allocate(a, shape, config.n_layer, n_ctx),
            adjusted: scratch.first(n_vocab),
            adjusted_upper: scratch.first(ADJUSTED_WORDS * n_vocab),
            scratch,
            selection: Selection::allocate(a, n_vocab),
            likeliest: Likeliest::allocate(a, n_slots, n_vocab),
            best: a.buffer("best", blocks),
            sampled,
            records,
            slots,
        }
    }

    /// Writes cos and sin of every position's angles.
    pub(super) fn write_rope_table(&self, gpu: &Gpu, angles: &Angles) {
        let half = angles.per_position.len();
        // In several writes, because the table of a long context would take too much memory here.
        for first in (0..self.n_ctx).step_by(POSITIONS_AT_ONCE) {
            let positions = first..(first + POSITIONS_AT_ONCE).min(self.n_ctx);
            let rows: Vec<[f32; 2]> = positions
                .flat_map(|pos| angles.at(pos).map(|pair| pair.map(|value| value as f32)))
                .collect();
            gpu.write(&self.rope_table, first * half, &rows);
        }
    }

    /// A step of `n_tokens` after `pos`. Its attention is split over the context, because there are
    /// too few heads and tokens to fill a card.
    pub(super) fn step(&self, pos: usize, n_tokens: usize) -> Step {
        if n_tokens == 1 {
            return self.few_step(pos, 1);
        }
        self.step_in_chunk(pos, n_tokens, (n_tokens, pos + n_tokens))
    }

    /// A step of `n_tokens` after `pos`, which is a part of a chunk. The chunk has `all` tokens and ends
    /// at `end`. Every part splits the context as the whole chunk would, because sums of floats depend
    /// on the splits.
    pub(super) fn step_in_chunk(
        &self,
        pos: usize,
        n_tokens: usize,
        (all, end): (usize, usize),
    ) -> Step {
        let (min, most) = match self.few_splits / all.max(1) {
            most if most > self.max_prefill_splits && end >= LONG * all => {
                (MIN_FEW_SPLIT, most.min(MAX_SPLITS as usize))
            }
            _ => (MIN_PREFILL_SPLIT, self.max_prefill_splits),
        };
        Self::split_step(pos, n_tokens, split_len(end, min, most))
    }

    /// A step of one token or few. If they are at most [`State::few_at`], the context is split for
    /// each of them as a single step of that token would split it.
    pub(super) fn few_step(&self, pos: usize, n_tokens: usize) -> Step {
        Self::split_step(pos, n_tokens, self.few_split(pos + n_tokens))
    }

    /// Positions in one split of a step of one token or few that ends at `end`.
    fn few_split(&self, end: usize) -> usize {
        if end <= SHORT {
            return self.min_split.min(SHORT_SPLIT);
        }
        split_len(end, self.min_split, self.max_splits)
    }

    /// Positions at which a step has other pipelines than at the first position: one with a few
    /// short splits, and one with many long ones. A short context may not reach them.
    pub(super) fn later_positions(&self) -> [usize; 2] {
        [SHORT_SPLIT, self.min_split * self.max_splits].map(|pos| pos.min(self.n_ctx - 1))
    }

    /// The most tokens of a draft pass after `pos`. It ends where a single token would split the
    /// context differently.
    pub(super) fn few_at(&self, pos: usize) -> usize {
        let alike = |n: &usize| self.few_split(pos + n) == self.few_split(pos + 1);
        (1..=self.few).rev().find(alike).unwrap_or(0)
    }

    /// A step of few tokens of different sequences. Each row is that of a single step of its
    /// sequence.
    pub(super) fn rows_step(&self, rows: impl Iterator<Item = Step>) -> Step {
        let mut all = Step::default();
        for (step, row) in rows.zip(&mut all.rows) {
            let Step { pos, first, split_len, token, .. } = step;
            *row = Row { pos, first, split_len, token };
            all.n_tokens += 1;
            all.n_splits = all.n_splits.max(step.n_splits);
        }
        all
    }

    /// The index in `tokens` of the token that was chosen last in a slot.
    pub(super) fn token_of(&self, slot: usize) -> usize {
        slot * SLOT_WORDS
    }

    /// The index in `tokens` of the first token of a chunk or of a draft pass.
    pub(super) fn first_token(&self) -> usize {
        (self.slots.len() + 1) * SLOT_WORDS
    }

    /// For each index in `tokens`, which row of [`Fetched::embd`] is that of the token there.
    fn rows_of_tokens(&self) -> Vec<u32> {
        let (first, n_slots) = (self.first_token(), self.slots.len());
        let row = |index: usize| match index.checked_sub(first) {
            Some(n) => n_slots + n,
            None => (index / SLOT_WORDS).min(n_slots - 1),
        };
        (0..self.tokens.len()).map(|index| row(index) as u32).collect()
    }

    fn split_step(pos: usize, n_tokens: usize, split_len: usize) -> Step {
        Step {
            pos: pos as u32,
            n_tokens: n_tokens as u32,
            n_splits: (pos + n_tokens).div_ceil(split_len) as u32,
            split_len: split_len as u32,
            ..Step::default()
        }
    }
}

/// The positions in one split of a step that ends at `end`. It is a multiple of `min`, and large
/// enough for at most `max` splits.
fn split_len(end: usize, min: usize, max: usize) -> usize {
    end.div_ceil(min * max) * min
}

impl Activations {
    fn allocate(
        a: &mut Allocation<'_>,
        label: &str,
        inputs: Inputs,
        [rows, k]: [usize; 2],
    ) -> Self {
        let floats =
            |a: &mut Allocation<'_>| a.buffer(label, rows * k).using(Used::Tokens(4 * k as u64));
        match inputs {
            Inputs::Rows => Self::Rows(Quantized {
                q: a.buffer(label, rows * k / 4).using(Used::Tokens(k as u64)),
                scale: a.buffer(label, rows).using(Used::Tokens(8)),
            }),
            Inputs::Groups => Self::Groups(quantized_groups(a, label, [rows, k])),
            Inputs::Floats => Self::Floats(floats(a)),
        }
    }
}

fn slots(
    a: &mut Allocation<'_>,
    n_vocab: usize,
    [tokens, sampled]: [&Buffer<u32>; 2],
    records: &Buffer<Record>,
) -> Vec<Slot> {
    const PARAMS: usize = SLOT_BYTES / size_of::<SamplingParams>();
    const PENALTIES: usize = SLOT_BYTES / size_of::<Penalties>();
    let n_slots = records.len() / N_RECORDS;
    // Counts and biases are a word for each token.
    let n_each = n_vocab.next_multiple_of(SLOT_WORDS);
    let sampling = a.buffer("sampling", n_slots * PARAMS);
    let penalties = a.buffer("penalties", n_slots * PENALTIES);
    let counts = a.buffer("counts", n_slots * n_each);
    let biases = a.buffer("biases", n_slots * n_each);
    // There are as many slots as tokens in a draft pass.
    let n_masks = n_slots * Mask::n_words(n_vocab);
    let each_masks = n_masks.next_multiple_of(SLOT_WORDS);
    let masks = a.buffer("masks", n_slots * each_masks);
    (0..n_slots)
        .map(|n| Slot {
            sampling: sampling.range(n * PARAMS, 1),
            penalties: penalties.range(n * PENALTIES, 1),
            counts: counts.range(n * n_each, n_vocab),
            biases: biases.range(n * n_each, n_vocab),
            masks: masks.range(n * each_masks, n_masks),
            records: records.range(n * N_RECORDS, N_RECORDS),
            token: tokens.range(n * SLOT_WORDS, 1),
            sampled: sampled.range(n * SLOT_WORDS, MAX_BATCH_STEPS),
        })
        .collect()
}

fn quantized_groups(a: &mut Allocation<'_>, label: &str, [rows, k]: [usize; 2]) -> QuantizedGroups {
    QuantizedGroups {
        q: a.buffer(label, rows * QuantizedGroups::words(k)).using(Used::Tokens(k as u64)),
        scale: a.buffer(label, rows * QuantizedGroups::scales(k)).using(Used::Tokens(k as u64 / 4)),
        factor: a.buffer(label, rows).using(Used::Tokens(4)),
    }
}

/// Tokens of one prefill step. The adapter's tuning says how many, but there are fewer if a binding
/// would not hold an activation of so many.
fn chunk(gpu: &Gpu, config: &Config, n_ctx: usize) -> usize {
    let splits = gpu.tuning.max_prefill_splits;
    // Gate and up are stored side by side if they do not share their input.
    let n_ff = if config.architecture.norms_inputs() { 2 * config.n_ff } else { config.n_ff };
    let widest = n_ff.max(n_qkv(config)).max(config.n_embd_q() * splits).max(config.n_embd)
        * size_of::<f32>();
    gpu.tuning.chunk.min(n_ctx).min(gpu.max_binding as usize / widest).max(1)
}

fn n_qkv(config: &Config) -> usize {
    config.n_embd_q() + 2 * config.n_embd_kv()
}

/// The tokens of context: as many as were asked for, or else as many as the model allows and a
/// binding holds.
fn context(
    gpu: &Gpu,
    config: &Config,
    shape: &AttentionShape,
    asked: Option<usize>,
) -> Result<usize> {
    let row = shape.cache_bytes(1).max(config.head_dim / 2 * size_of::<[f32; 2]>());
    let fits = gpu.max_binding as usize / row;
    let bad = |why: String| Err(Error::BadOption { name: "context".into(), why });
    match asked {
        None => {
            // In u64, because the sizes of a hostile file may not fit into the 32 bits of a page.
            let position = 2 * config.n_layer as u64 * shape.cache_bytes(1) as u64;
            let most = gpu.max_bytes.map_or(u64::MAX, |most| most / 4).min(MAX_CACHE as u64);
            let by_default = (most / position).max(1) as usize;
            Ok(config.n_ctx.min(fits).min(by_default))
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
