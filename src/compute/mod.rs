//! The contract between a session and the engine or reference that computes for it. It names no
//! GPU. "The implementation" stands for either.

mod choice;
mod options;
mod pending;
mod profile;
mod split;

use std::ops::Range;

use futures_channel::oneshot;
use futures_util::future::LocalBoxFuture;

use crate::error::{Error, Result};
use crate::model::{Adapters, Config, Weight};
use crate::sampling::Mask;
use crate::source::{Reader, Source};

pub use choice::{Choice, Choosing, NO_TOKEN, Pick};
pub use options::{Backend, EngineOptions, KvType, LmHead};
pub use pending::{Pending, let_others_run};
pub use profile::{KernelTime, Loss, Profile};
pub use split::{MAX_NORM, MAX_SPLIT_COLUMNS, MIN_NORM, SLACK};

/// A report on a load in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The file's header has been read, it describes a model that can run, and the device is open.
    /// No tensor has been read.
    Header,
    /// Some of the file's bytes are where they will be computed with.
    Upload {
        /// Bytes read and put there.
        loaded: u64,
        /// Bytes in the file.
        total: u64,
    },
    /// All bytes are there. The implementation finishes its work, such as compiling the kernels of a
    /// first answer.
    Compile,
}

/// A sequence's row in a step of several sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seat {
    /// Its slot. No two sequences of a step have the same slot.
    pub slot: usize,
    /// Where it begins in the KV cache.
    pub first: usize,
    /// Tokens of the sequence before the step.
    pub pos: usize,
}

/// The most spans of a pass.
pub const MAX_SPANS: usize = 64;

/// Tokens of one sequence in a pass of several sequences.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Where the sequence begins in the KV cache.
    pub first: usize,
    /// Tokens of the sequence before these.
    pub pos: usize,
    /// The tokens, one or more.
    pub ids: &'a [u32],
    /// The token after `ids`, if it is to be scored.
    pub next: Option<u32>,
}

/// A product of a block. A tap can read its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Queries, keys and values, before they are normed and rotated: `[n_q + 2 n_kv]` for each token.
    Qkv,
    /// The output projection of attention, as it was added to the residual stream: the stream
    /// `[n_embd]`.
    Output,
    /// Gate and up of the feed-forward network: the gated activation `[n_ff]`.
    GateUp,
    /// The down projection of the feed-forward network, as it was added to the residual stream: the
    /// stream after the block `[n_embd]`.
    Down,
}

impl Site {
    /// The number of values that a token has here.
    pub fn width(self, config: &Config) -> usize {
        match self {
            Self::Qkv => config.n_embd_q() + 2 * config.n_embd_kv(),
            Self::GateUp => config.n_ff,
            Self::Output | Self::Down => config.n_embd,
        }
    }
}

/// A point within the model whose values can be read for tokens of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// The result of a product of a block; the first block is 0. The pass ends there: it fills the
    /// KV cache of this block and those before it, and of no other.
    Product(usize, Site),
    /// The queries of a block `[n_q]`, which keys are multiplied with: normed, rotated and divided by
    /// `sqrt(head_dim)`. A head's values are in the order in which the cache has those of its keys. The pass
    /// ends there.
    Queries(usize),
    /// The hidden state `[n_embd]`: the stream after all blocks and the last norm.
    Hidden,
}

impl Tap {
    /// The number of values that a token has here.
    pub fn width(self, config: &Config) -> usize {
        match self {
            Self::Product(_, site) => site.width(config),
            Self::Queries(_) => config.n_embd_q(),
            Self::Hidden => config.n_embd,
        }
    }

    /// Checks that the model has this point, and that the pass has the tokens of `chosen`.
    ///
    /// Errors: `bad-option` if there is no such block, if no token is chosen, or if an index is not
    /// less than the number of tokens of all spans.
    pub fn check(self, config: &Config, spans: &[Span<'_>], chosen: &[usize]) -> Result<()> {
        let bad = |why| Err(Error::BadOption { name: "tap".into(), why });
        let n_tokens: usize = spans.iter().map(|span| span.ids.len()).sum();
        match self {
            Self::Product(block, _) | Self::Queries(block) if block >= config.n_layer => {
                bad(format!("block {block}, but the model has {}", config.n_layer))
            }
            _ if chosen.is_empty() => bad("no token is chosen".into()),
            _ => match chosen.iter().find(|&&token| token >= n_tokens) {
                Some(token) => bad(format!("token {token}, but the pass has {n_tokens}")),
                None => Ok(()),
            },
        }
    }
}

impl Span<'_> {
    /// Checks the spans of a pass that takes at most `most` tokens.
    ///
    /// Errors: `bad-option` if a span has no token, if there is no span, or if there are more than
    /// [`MAX_SPANS`] of them or more than `most` tokens in all of them.
    pub fn check_all(spans: &[Span<'_>], most: usize) -> Result<()> {
        let bad = |why| Err(Error::BadOption { name: "pass".into(), why });
        if spans.iter().any(|span| span.ids.is_empty()) {
            return bad("a span has no token".into());
        }
        if spans.len() > MAX_SPANS {
            return bad(format!("{} spans, not 1 to {MAX_SPANS}", spans.len()));
        }
        match spans.iter().map(|span| span.ids.len()).sum() {
            n if (1..=most).contains(&n) => Ok(()),
            n => bad(format!("{n} tokens, not 1 to {most}")),
        }
    }

    /// The tokens to be scored.
    pub fn scored(&self) -> Vec<u32> {
        self.ids.iter().skip(1).copied().chain(self.next).collect()
    }
}

/// How a session uses the implementation best. None of it changes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The most tokens of a sequence.
    pub n_ctx: usize,
    /// The most tokens of a [`Compute::prefill`].
    pub chunk: usize,
    /// The most sequences of a step.
    pub slots: usize,
    /// The most tokens of a [`Compute::pass`].
    pub pass: usize,
    /// How many steps may be in flight.
    pub depth: Depth,
    /// Whether drafts make generations faster.
    pub prompt_lookup: bool,
    /// Where each pass uploads weights, and its tokens share that: the tokens of a prompt's first chunk, before it is
    /// known how long one takes.
    pub shared_chunk: Option<usize>,
}

/// How many steps may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Batches in flight, at most.
    pub max_batches: usize,
    /// Steps of a batch, at most.
    pub max_batch_steps: usize,
}

/// Facts about the implementation, for people and reports.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The machine that computes.
    pub backend: Backend,
    /// Its name for people.
    pub adapter: String,
    /// The threads that compute, if the CPU does.
    pub threads: Option<usize>,
    /// How it holds keys and values.
    pub kv: KvType,
    /// Bytes of weights, KV cache and all other values that are held.
    pub gpu_bytes: u64,
    /// The layers whose weights do not stay on the GPU.
    pub streamed_layers: usize,
    /// Sentences for people about choices that were made while it was loaded.
    pub notes: Vec<String>,
    /// More such sentences, about choices that change no number. A strict load accepts them.
    pub remarks: Vec<String>,
    /// Dispatches of one greedy decode step.
    pub dispatches_per_token: usize,
    /// The kernels in use with their variants.
    pub kernels: Vec<String>,
    /// A hash of some bytes of each tensor. Other weights have another hash.
    pub sample: u64,
}

/// Makes an implementation from a model file.
pub trait Opening {
    /// The part that is opened before the model's sizes are known: a device.
    type Opened;

    /// Opens the device, while the file's header is read.
    ///
    /// Errors: those of the device.
    fn open(self) -> impl Future<Output = Result<Self::Opened>>;

    /// Loads the tensors of `table` from `reader`.
    ///
    /// Errors: `unsupported-model`, `bad-option` (context, kv), `out-of-memory`, `bad-gguf` (values
    /// that no model has), and those of the source.
    fn load<S: Source>(
        opened: Self::Opened,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> impl Future<Output = Result<Box<dyn Compute>>>;
}

/// The steps of one sequence, which [`Compute::use_cache`] and [`Compute::use_slot`] choose.
pub trait Steps {
    /// Computes `ids` from position `pos` on and chooses the token that follows. They are the last of a
    /// chunk that began at `begin`, see [`Compute::prefill`].
    fn prefill_and_sample(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<Choice>>;

    /// Computes the token that was chosen last in the slot, at `pos`, and chooses the one that
    /// follows. Repeats this `n` times, at most [`Depth::max_batch_steps`].
    fn decode_and_sample(&self, pos: usize, n: usize) -> Pending<Vec<Choice>>;

    /// Computes `ids` from position `pos` on and chooses greedily after each. `uncertain` are the
    /// tokens before them that are drafts too, because the pass that checks them is still in
    /// flight.
    fn decode_and_choose(&self, ids: &[u32], pos: usize, uncertain: &[u32])
    -> Pending<Vec<Choice>>;

    /// Writes which tokens may be chosen in a slot whose choosing is [`masked`](Choosing::masked).
    /// The first mask decides after a step, and mask number `n` after token `n` of a draft pass.
    /// Masks stay until others are written, so a step can be submitted only once its mask is known.
    ///
    /// Errors: `internal` for a mask of another vocabulary or without a token, and for more masks than a
    /// draft pass has tokens.
    fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()>;

    /// The most tokens of [`Steps::decode_and_choose`] at `pos`; 0 if it cannot be called.
    fn max_draft_pass(&self, pos: usize) -> usize;

    /// Counts `ids` for the penalties. They are those that a draft pass was right to compute, in a
    /// sequence of `prompt` and `output`, which have them already. Steps count their tokens by
    /// themselves.
    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]);
}

/// All that a session asks of an implementation. Submitted work is done in the order of its
/// submission.
///
/// Sequences share a KV cache. The session says where each has its range. It has checked ids and
/// positions.
pub trait Compute: Steps {
    /// How a session uses it best.
    fn traits(&self) -> Traits;

    /// Facts about it.
    fn about(&self) -> About;

    /// The model's sizes.
    fn config(&self) -> &Config;

    /// Fails with the first error that the device has reported by itself.
    fn check(&self) -> Result<()>;

    /// Whether the device is lost, for good.
    fn is_lost(&self) -> bool;

    /// Resolves when the device is lost; fails when it is freed.
    fn lost(&self) -> oneshot::Receiver<Loss>;

    /// Positions of the KV cache: at least [`Traits::n_ctx`].
    fn positions(&self) -> usize;

    /// Buffers of the KV cache: the keys of the first block, its values, and so on.
    fn cache_buffers(&self) -> usize;

    /// Bytes of a position in each buffer of the KV cache.
    fn position_bytes(&self) -> usize;

    /// Makes the KV cache larger: twice as large, or by `more` positions if that is more, up to
    /// `most` positions. It keeps its contents. Gives whether it has `more` now.
    ///
    /// Errors: `device-lost`.
    fn grow(&mut self, more: usize, most: usize) -> LocalBoxFuture<'_, Result<bool>>;

    /// Applies these adapters, and no others, to the tokens to come. They were checked against this model.
    /// Without any, all is as it was before the first. If this fails, none is applied.
    ///
    /// Errors: `out-of-memory`, `bad-adapter` for what the implementation cannot apply, `device-lost`.
    fn set_adapters<'a>(&'a mut self, adapters: &'a Adapters) -> LocalBoxFuture<'a, Result<()>>;

    /// Copies `n` positions of the KV cache, in ascending order.
    fn copy_cache(&self, from: usize, to: usize, n: usize);

    /// Reads `n` positions of a buffer of the KV cache, from `first` on. [`KvType::head`] reads a head of
    /// each.
    fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Pending<Vec<u32>>;

    /// Writes positions of a buffer of the KV cache, from `first` on. `bytes` are whole positions,
    /// as they were read.
    fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) -> Pending<()>;

    /// Makes later steps use the KV cache from `first` on. Without a call, `first` is 0.
    fn use_cache(&self, first: usize);

    /// Makes later steps choose tokens in `slot`. Without a call, that is slot 0. Each slot has
    /// settings, counts, and the token that was chosen last in it.
    fn use_slot(&self, slot: usize);

    /// Sets how the next tokens are chosen in the slot. Without a call, they are chosen greedily.
    fn set_choosing(&self, choosing: &Choosing);

    /// Prepares the kernels that choose tokens as the slot is set.
    fn compile_choosing(&self) -> LocalBoxFuture<'_, ()>;

    /// Prepares one more of the things that a load leaves for later; `None` when none is left.
    fn compile_next(&self) -> Option<LocalBoxFuture<'static, ()>>;

    /// Counts the tokens of a sequence for the penalties that are set. It is to be called before
    /// the first token is chosen by adjusted logits. Steps count the tokens that are chosen after
    /// that.
    fn count(&self, prompt: &[u32], output: &[u32]);

    /// Computes tokens from `pos` on. They are all or some of the tokens of a chunk at the positions
    /// `chunk`, at most [`Traits::chunk`]. All calls for a chunk together give the results that one call
    /// would give, unless one of them has a single token.
    fn prefill(&self, ids: &[u32], pos: usize, chunk: Range<usize>) -> Pending<()>;

    /// Like [`Steps::prefill_and_sample`], but reads the logits `[n_vocab]` after the last token.
    fn prefill_and_read(&self, ids: &[u32], pos: usize, begin: usize) -> Pending<Vec<f32>>;

    /// Makes `id` the token of the slot, as if it had been chosen there last.
    fn put_token(&self, slot: usize, id: u32);

    /// Like [`Steps::decode_and_sample`], for a sequence in each of `seats`. Each sequence gets the
    /// tokens that it would get alone.
    fn decode_batch(&self, seats: &[Seat], n: usize) -> Pending<Vec<Vec<Choice>>>;

    /// The first half of a step of [`Compute::decode_batch`]: computes the token that was chosen last
    /// in the slot of each of `seats`. [`Compute::choose`] is the second half.
    fn decode_ahead(&self, seats: &[Seat]);

    /// Chooses the tokens that follow those of [`Compute::decode_ahead`] with the same `seats`, of the
    /// seats at `rows` alone. Nothing has been computed in between.
    fn choose(&self, seats: &[Seat], rows: &[usize]) -> Pending<Vec<Vec<Choice>>>;

    /// Computes tokens of several sequences, at most [`Traits::pass`] together. Each span fills its
    /// own range of the KV cache. If there are at most [`Traits::slots`] tokens, this gives the bits of
    /// single steps. Otherwise rounding may differ from that of a [`Compute::prefill`] of each span.
    ///
    /// If [`Span::check_all`] refuses the spans, the result is its error.
    fn pass(&self, spans: &[Span<'_>]) -> Pending<()>;

    /// Like [`Compute::pass`], and gives the log-probabilities of each span by the model alone: of
    /// each of its tokens but the first, and of the next one, each after the tokens before it.
    fn score(&self, spans: &[Span<'_>]) -> Pending<Vec<Vec<f32>>>;

    /// Like [`Compute::pass`], but ends at `tap` and reads the values there. `chosen` are the tokens
    /// whose values are wanted. They are counted through all spans, from 0 on. The result has the
    /// values of each, in the order of `chosen`; [`Tap::width`] says how many that are.
    ///
    /// If [`Span::check_all`] or [`Tap::check`] refuses the call, the result is the error.
    fn tap(&self, spans: &[Span<'_>], chosen: &[usize], tap: Tap) -> Pending<Vec<Vec<f32>>>;

    /// The best rate of the memory, in GB/s. Measured once.
    ///
    /// Errors: `missing-feature` if it cannot be measured.
    fn bandwidth(&self) -> LocalBoxFuture<'_, Result<f64>>;

    /// Bytes that one greedy decode step with `pos` tokens in the cache has to read and write.
    fn bytes_per_token(&self, pos: usize) -> u64;

    /// The time of each kernel in one step of `n_tokens` after `pos` tokens.
    ///
    /// Errors: `missing-feature` without a clock for it.
    fn profile<'a>(
        &'a self,
        pos: usize,
        n_tokens: usize,
        choosing: &'a Choosing,
    ) -> LocalBoxFuture<'a, Result<Profile>>;
}
