//! A loaded model: prompt in, tokens out.

mod admission;
mod caches;
mod calls;
mod chunks;
mod conversation;
mod decode;
mod draft;
#[cfg(test)]
mod fake;
mod generate;
mod generation;
mod header;
mod lookup;
mod output;
mod pace;
mod pipeline;
mod run;
mod room;
mod saved;
mod score;
mod serve;
mod stats;
mod stop;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use futures_util::future::try_join;
use serde::Serialize;
use web_time::{Duration, Instant};

use crate::chat::{self, Message, Template, TemplateChoice};
use crate::compute::{Choosing, Compute, EngineOptions, Opening, Pending, Traits};
use crate::error::{Error, Result};
use crate::source::{Reader, Source};
use crate::tokenizer::{Rules, Tokenizer};

use caches::{CacheId, Caches, Wanted};
use chunks::Chunks;
use conversation::Conversation;
use header::Header;
use pace::Pace;
use room::MAX_KEPT;

pub use crate::chat::Channel;
pub use crate::compute::{KvType, LmHead, Profile, Progress};
pub use calls::{Calls, OnToken, Prompt};
pub use generate::GenerateOptions;
pub use output::Token;
pub use stats::{FinishReason, Stats};

/// How to load a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// How the engine holds it.
    pub engine: EngineOptions,
    /// What to do with a tokenizer that this crate does not know.
    pub tokenizer: Rules,
    /// The chat template.
    pub template: TemplateChoice,
}

/// What a loaded model is and how it runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// `general.name`.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// Tokens the KV cache holds.
    pub context_length: usize,
    /// How it holds keys and values.
    pub kv: KvType,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Weights in the model.
    pub parameters: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of GPU buffers.
    pub gpu_bytes: u64,
    /// Bytes of KV cache that a text takes which fills the context.
    pub cache_bytes: u64,
    /// The most generations that share a step. Those of the whole context, as far as there is memory
    /// for `cache_bytes` of each; others wait.
    pub max_batch: usize,
    /// The adapter's name.
    pub adapter: String,
    /// Dispatches of one greedy decode step.
    pub dispatches_per_token: usize,
    /// Bytes that a greedy decode step moves, with an empty context: the weights that it reads. Of the rows
    /// of the LM head that are computed again, one is counted.
    pub bytes_per_token: u64,
    /// The kernel variants in use, `name` or `name/variant`.
    pub kernels: Vec<String>,
    /// What was chosen and may matter to the text, in sentences for people: rules that are not quite
    /// those of the file, factors that depend on the context.
    pub notes: Vec<String>,
    /// The chat template: `file`, `builtin: NAME` or `given`; `None` if there is none.
    pub template: Option<String>,
    /// The texts of the tokens that end an answer.
    pub stop_tokens: Vec<String>,
    /// Whether the template can switch reasoning on and off.
    pub thinking: bool,
}

/// A loaded model, and the texts whose keys and values it holds.
pub struct Session {
    tokenizer: Rc<Tokenizer>,
    template: Option<Rc<Template>>,
    engine: Box<dyn Compute>,
    traits: Traits,
    info: Info,
    caches: Caches,
    pace: Pace,
    chunks: Chunks,
    /// Whether the KV cache may still grow before there is need.
    grows_ahead: bool,
    /// The conversation whose prompt was made last.
    asked: Option<Conversation>,
    /// A hash of the file's header and length, to recognise the file.
    file: u64,
    /// A hash of what keys and values depend on: the model, and how it was loaded.
    saved_as: u64,
}

/// What a session needs to continue on another device, besides the weights.
pub struct Memory {
    file: u64,
    tokens: Vec<u32>,
    conversation: Option<Conversation>,
}

impl Session {
    /// Loads a GGUF file from `reader`, tensor by tensor, to what `opening` makes: a future of a
    /// [`Gpu`](crate::gpu::Gpu), or [`OnCpu`](crate::reference::OnCpu). The file's header is read while a
    /// device opens.
    ///
    /// Errors: whatever is wrong with the file (`bad-gguf`, `unsupported-model`, `missing-tensor`,
    /// `tensor-shape`), the options (`bad-option`), the GPU (`out-of-memory`), the source; those of
    /// `opening`.
    pub async fn load<S: Source, O: Opening>(
        opening: O,
        reader: &mut Reader<S>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let (opened, header) = try_join(opening.open(), Header::read(reader, options)).await?;
        let Header { config, table, tokenizer, template, stop_tokens, file } = header;
        let EngineOptions { i2s_arm, float_activations, .. } = options.engine;
        let parameters = table.iter().map(|w| w.tensor.ne.iter().product::<u64>()).sum();
        let engine = O::load(opened, config, &table, reader, &options.engine, progress).await?;
        let (about, traits) = (engine.about(), engine.traits());
        let n_ctx = traits.n_ctx;
        let config = engine.config();
        let saved_as = {
            let mut hasher = DefaultHasher::new();
            let long_factors = config.rope.takes_long_factors(n_ctx);
            (file, about.sample, about.kv).hash(&mut hasher);
            (i2s_arm, float_activations, long_factors).hash(&mut hasher);
            hasher.finish()
        };
        let info = Info {
            name: config.name.clone(),
            architecture: config.architecture.name.into(),
            context_length: n_ctx,
            kv: about.kv,
            vocab_size: config.n_vocab,
            parameters,
            bytes: reader.len(),
            gpu_bytes: about.gpu_bytes,
            cache_bytes: n_ctx as u64 * bytes_per_position(&*engine),
            max_batch: traits.slots,
            adapter: about.adapter,
            dispatches_per_token: about.dispatches_per_token,
            bytes_per_token: engine.bytes_per_token(0),
            kernels: about.kernels,
            notes: tokenizer.notes().iter().cloned().chain(config.rope.note(n_ctx)).collect(),
            template: template.as_ref().map(|template| template.name().into()),
            stop_tokens,
            thinking: template.as_ref().is_some_and(Template::has_thinking),
        };
        Ok(Self {
            tokenizer: Rc::new(tokenizer),
            template: template.map(Rc::new),
            pace: Pace::new(traits.depth),
            chunks: Chunks::new(traits.chunk),
            caches: Caches::new(engine.positions()),
            grows_ahead: true,
            traits,
            engine,
            info,
            asked: None,
            file,
            saved_as,
        })
    }

    /// Gives up the device and everything on it.
    pub fn into_memory(self) -> Memory {
        let (tokens, conversation) = match self.caches.latest() {
            Some(latest) => (latest.tokens.clone(), latest.conversation.clone()),
            None => Default::default(),
        };
        Memory { file: self.file, tokens, conversation }
    }

    /// Makes a session that was just loaded continue where the session of `memory` was. The KV
    /// cache is computed again when it is next needed.
    ///
    /// Errors: `integrity` if the two were not loaded from the same file.
    pub fn recall(&mut self, memory: &Memory) -> Result<()> {
        if self.file != memory.file {
            return Err(Error::Integrity {
                expected: "the file that the model was loaded from at first".into(),
                found: "another".into(),
            });
        }
        self.caches.clear();
        self.caches.remember(memory.tokens.clone(), memory.conversation.clone());
        Ok(())
    }

    /// Gives up what the KV cache holds: the next prompt is computed as a whole.
    pub fn forget(&mut self) {
        self.caches.clear();
    }

    /// What computes.
    pub fn compute(&self) -> &dyn Compute {
        &*self.engine
    }

    /// Compiles one more of the kernels that a first answer does not need. The future does not borrow
    /// the session. `None` when none is left. Calls may be made meanwhile: they compile what they need
    /// and find missing.
    pub fn compile_next(&self) -> Option<impl Future<Output = ()> + use<>> {
        self.engine.compile_next()
    }

    /// What the model is, and how it runs.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The model's tokenizer. It can be used while the session generates.
    pub fn tokenizer(&self) -> &Rc<Tokenizer> {
        &self.tokenizer
    }

    /// The model's chat template.
    ///
    /// Errors: `unsupported-model` if it has none.
    pub fn template(&self) -> Result<&Rc<Template>> {
        self.template.as_ref().ok_or_else(chat::no_template)
    }

    /// The tokens of a conversation that ends with a message of the user. `thinking`: whether the
    /// model is to reason before it answers; `None`: as its template has it.
    ///
    /// Answers generated here keep their tokens, so that only new tokens are computed.
    ///
    /// Errors: those of [`Template::prompt`].
    pub fn chat_prompt(
        &mut self,
        messages: &[Message],
        thinking: Option<bool>,
    ) -> Result<Vec<u32>> {
        let asked = self.conversation(messages, thinking)?;
        let prompt = asked.prompt.clone();
        self.asked = Some(asked);
        Ok(prompt)
    }

    /// The prompt of a conversation. Answers generated here keep their tokens.
    fn conversation(&self, messages: &[Message], thinking: Option<bool>) -> Result<Conversation> {
        let before = self.caches.conversing(messages);
        let before = before.and_then(|text| Some((text.conversation.as_ref()?, &text.tokens[..])));
        Conversation::new(&self.tokenizer, self.template()?, messages, thinking, before)
    }

    /// The logits after the last of `ids`, `[n_vocab]`.
    pub async fn logits(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        self.check_prompt(ids)?;
        // A future that was dropped may have left running texts.
        self.caches.release_all();
        let wanted = Wanted { least: ids.len(), most: ids.len() };
        let Some(id) = self.place(ids, wanted, MAX_KEPT).await? else { return Err(given_up()) };
        let Some(text) = self.caches.get(id) else { return Err(given_up()) };
        self.engine.use_cache(text.first());
        let from = text.filled;
        self.prefill(id, from, &|| false).await?;
        let Some(text) = self.caches.get(id) else { return Err(given_up()) };
        let pos = std::mem::replace(&mut text.filled, ids.len());
        self.caches.release(id);
        self.engine.prefill_and_read(&ids[pos..], pos).take().await
    }

    /// The best rate of the GPU's memory, in GB/s: that of a kernel that only reads. Measured once.
    pub async fn bandwidth(&self) -> Result<f64> {
        self.engine.bandwidth().await
    }

    /// Bytes of weights, keys, values and activations that one greedy decode step reads and writes
    /// with `pos` tokens in the cache. Bytes that it reads several times count once.
    pub fn bytes_per_token(&self, pos: usize) -> u64 {
        self.engine.bytes_per_token(pos)
    }

    /// The time of each kernel in one step of `n_tokens` after `pos` tokens: one token is decoded,
    /// several are computed as a prompt, at most one chunk of it. The next token is chosen as `choosing`
    /// says. This overwrites the KV cache.
    ///
    /// Errors: `bad-option` (beyond the context), `missing-feature` without timestamp queries.
    pub async fn profile(
        &mut self,
        pos: usize,
        n_tokens: usize,
        choosing: &Choosing,
    ) -> Result<Profile> {
        let n_ctx = self.traits.n_ctx;
        if n_tokens == 0 || pos.saturating_add(n_tokens) > n_ctx {
            let why =
                format!("{n_tokens} tokens after {pos} are not within the context of {n_ctx}");
            return Err(Error::BadOption { name: "profile".into(), why });
        }
        self.caches.clear();
        self.engine.use_cache(0);
        self.engine.profile(pos, n_tokens.min(self.traits.chunk), choosing).await
    }

    /// Keeps as many steps in flight as if each took `time`, whatever it takes. For tests, which
    /// should do the same on every machine.
    pub fn suppose_steps_of(&mut self, time: Duration) {
        self.pace.suppose(time);
    }

    /// Refuses a prompt that cannot be computed.
    fn check_prompt(&self, ids: &[u32]) -> Result<()> {
        self.engine.check()?;
        let bad = |why: String| Err(Error::BadOption { name: "prompt".into(), why });
        if ids.is_empty() {
            return bad("is empty".into());
        }
        let n_vocab = self.info.vocab_size;
        if let Some(id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
            return bad(format!("has token {id}, but the vocabulary ends at {}", n_vocab - 1));
        }
        if ids.len() > self.traits.n_ctx {
            return Err(Error::ContextFull { prompt: ids.len(), context: self.traits.n_ctx });
        }
        Ok(())
    }

    /// Computes a text from what is filled, except for the last chunk: that is left to the step
    /// which chooses a token. The first chunk began at `from`. The next chunk is prepared while one is
    /// computed, so that stopping leaves at most two chunks to finish.
    async fn prefill(
        &mut self,
        id: CacheId,
        from: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Prefilled> {
        let Some(text) = self.caches.get(id) else { return Err(given_up()) };
        let mut before = None;
        loop {
            let (pos, len) = (text.filled, text.tokens.len());
            let (tokens, end) = self.chunks.next(from, pos, len);
            if pos + tokens == len {
                return Ok(Prefilled::Done);
            }
            if stopped() {
                return Ok(Prefilled::Stopped(before));
            }
            let chunk = Chunk::submit(&*self.engine, &text.tokens[pos..pos + tokens], pos, end);
            text.filled += tokens;
            if let Some(before) = before.replace(chunk) {
                before.take(&mut self.chunks).await?;
            }
        }
    }
}

/// Bytes of a position of the KV cache, in all blocks.
fn bytes_per_position(engine: &dyn Compute) -> u64 {
    (engine.cache_buffers() * engine.position_bytes()) as u64
}

/// How far [`Session::prefill`] has come.
enum Prefilled {
    /// To the last chunk.
    Done,
    /// Not as far: it was stopped. This chunk may be in flight.
    Stopped(Option<Chunk>),
}

/// A chunk of a prompt in flight.
struct Chunk {
    tokens: usize,
    done: Pending<()>,
    submitted: Instant,
}

impl Chunk {
    /// Submits `ids`; the arguments are those of [`Compute::prefill`].
    fn submit(engine: &dyn Compute, ids: &[u32], pos: usize, end: usize) -> Self {
        let done = engine.prefill(ids, pos, end);
        Self { tokens: ids.len(), done, submitted: Instant::now() }
    }

    /// Waits until it is done, and tells `chunks` how long it took.
    async fn take(self, chunks: &mut Chunks) -> Result<()> {
        self.done.take().await?;
        chunks.done(self.tokens, self.submitted, Instant::now());
        Ok(())
    }
}

/// What cannot be: a text that a generation uses gives nothing up.
fn given_up() -> Error {
    Error::Internal("a running text has no room in the KV cache".into())
}
