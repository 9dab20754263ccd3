//! A loaded model.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Weak;

use futures_util::future::try_join;
use web_time::Duration;

use super::asked::Prior;
use super::caches::Caches;
use super::chunks::Chunks;
use super::conversation::{Asking, Conversation};
use super::header::Header;
use super::info::Info;
use super::options::LoadOptions;
use super::pace::Pace;
use crate::chat::{self, Message, Template, Tools};
use crate::compute::{Choosing, Compute, EngineOptions, Opening, Profile, Progress, Traits};
use crate::error::{Error, Result};
use crate::model::{Adapter, Adapters, Pooling, Weight};
use crate::source::{Reader, Source};
use crate::tokenizer::Tokenizer;

/// A loaded model, and the sequences whose keys and values it holds.
pub struct Session {
    pub(super) tokenizer: Rc<Tokenizer>,
    template: Option<Rc<Template>>,
    pub(super) engine: Box<dyn Compute>,
    pub(super) traits: Traits,
    pub(super) info: Info,
    /// How texts are embedded if a call does not say it.
    pub(super) pooling: Option<Pooling>,
    pub(super) caches: Caches,
    pub(super) pace: Pace,
    pub(super) chunks: Chunks,
    /// Whether the KV cache may still grow before it has to.
    pub(super) grows_ahead: bool,
    /// The conversation whose prompt was made last.
    pub(super) asked: Option<Conversation>,
    /// The log-probabilities of the options that were decided last, without a text.
    pub(super) prior: Option<Prior>,
    /// The model's tensors, with which adapters are compared.
    pub(super) table: Vec<Weight>,
    /// The adapters that were loaded for this model.
    pub(super) own: Vec<Weak<Adapter>>,
    /// Those that are applied.
    pub(super) adapters: Adapters,
    /// A hash of the file's header and length, which identifies the file.
    file: u64,
    /// A hash of everything that keys and values depend on without adapters: the model, and how it was
    /// loaded.
    pub(super) saved_as: u64,
}

/// Everything that a session needs to continue on another device, except the weights.
pub struct Memory {
    file: u64,
    tokens: Vec<u32>,
    conversation: Option<Conversation>,
    pub(super) own: Vec<Weak<Adapter>>,
    pub(super) adapters: Adapters,
}

impl Session {
    /// Loads a GGUF file from `reader`, tensor by tensor. `opening` makes the implementation: it is
    /// a future of a [`Gpu`](crate::gpu::Gpu), [`OnCpu`](crate::cpu::OnCpu), or
    /// [`OnReference`](crate::reference::OnReference). The file's header is read while a device opens.
    ///
    /// Errors: those of the file (`bad-gguf`, `unsupported-model`, `missing-tensor`,
    /// `tensor-shape`), of the options (`bad-option`), of the GPU (`out-of-memory`), of the source,
    /// and of `opening`.
    pub async fn load<S: Source, O: Opening>(
        opening: O,
        reader: &mut Reader<S>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let (opened, header) = try_join(opening.open(), Header::read(reader, options)).await?;
        progress(Progress::Header);
        let Header { config, table, tokenizer, template, stop_tokens, file } = header;
        let EngineOptions { i2s_arm, float_activations, deterministic, .. } = options.engine;
        let parameters = table.iter().map(|w| w.tensor.ne.iter().product::<u64>()).sum();
        let mut held = options.engine.clone();
        if options.strict {
            // If there is no room for the model's own context, the engine refuses it.
            held.context.get_or_insert(config.n_ctx);
        }
        let engine = O::load(opened, config, &table, reader, &held, progress).await?;
        let (about, traits) = (engine.about(), engine.traits());
        if let (true, Some(note)) = (options.strict, about.notes.first()) {
            let why = format!("with `strict`, nothing else is taken: {note}");
            return Err(Error::MissingFeature(why));
        }
        let n_ctx = traits.n_ctx;
        let chunks = match traits.shared_chunk {
            _ if deterministic => Chunks::fixed(traits.chunk),
            Some(first) => Chunks::shared(traits.chunk, first),
            None => Chunks::new(traits.chunk),
        };
        let config = engine.config();
        let saved_as = {
            let mut hasher = DefaultHasher::new();
            let long_factors = config.rope.takes_long_factors(n_ctx);
            (file, about.sample, about.kv).hash(&mut hasher);
            (i2s_arm, float_activations, long_factors).hash(&mut hasher);
            if let Some(grid) = chunks.grid() {
                grid.hash(&mut hasher);
            }
            hasher.finish()
        };
        let pooling = options.pooling.or(config.pooling);
        let info = Info {
            name: config.name.clone(),
            architecture: config.architecture.name.into(),
            backend: about.backend,
            context_length: n_ctx,
            kv: about.kv,
            layers: config.n_layer,
            heads: config.n_head,
            vocab_size: config.n_vocab,
            parameters,
            bytes: reader.len(),
            gpu_bytes: about.gpu_bytes,
            streamed_layers: about.streamed_layers,
            cache_bytes: n_ctx as u64 * bytes_per_position(&*engine),
            kv_bytes: engine.positions() as u64 * bytes_per_position(&*engine),
            max_batch: traits.slots,
            adapter: about.adapter,
            threads: about.threads,
            dispatches_per_token: about.dispatches_per_token,
            bytes_per_token: engine.bytes_per_token(0),
            kernels: about.kernels,
            notes: [tokenizer.notes(), &about.notes, &about.remarks]
                .concat()
                .into_iter()
                .chain(config.rope.note(n_ctx))
                .collect(),
            template: template.as_ref().map(|template| template.name().into()),
            embeds: config.is_embedding(),
            pooling: pooling.map(Pooling::name),
            dimensions: config.n_embd,
            stop_tokens,
            thinking: template.as_ref().is_some_and(Template::has_thinking),
        };
        Ok(Self {
            tokenizer: Rc::new(tokenizer),
            template: template.map(Rc::new),
            pace: Pace::new(traits.depth),
            caches: Caches::new(engine.positions(), chunks.grid()),
            chunks,
            grows_ahead: true,
            traits,
            engine,
            info,
            pooling,
            asked: None,
            prior: None,
            table,
            own: Vec::new(),
            adapters: Adapters::default(),
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
        let Self { file, own, adapters, .. } = self;
        Memory { file, tokens, conversation, own, adapters }
    }

    /// Makes a session that was just loaded continue where the session of `memory` was. The KV
    /// cache is computed again when it is next needed. The adapters are applied again.
    ///
    /// Errors: `integrity` if the two were not loaded from the same file; `bad-adapter`, `out-of-memory` and
    /// `device-lost` if the adapters cannot be applied. [`Memory::set_adapters`] chooses other ones before.
    pub async fn recall(&mut self, memory: &Memory) -> Result<()> {
        if self.file != memory.file {
            return Err(Error::Integrity {
                expected: "the file that the model was loaded from at first".into(),
                found: "another".into(),
            });
        }
        self.take_adapters(&memory.own, &memory.adapters).await?;
        self.caches.clear();
        self.caches.remember(memory.tokens.clone(), memory.conversation.clone());
        Ok(())
    }

    /// Empties the KV cache, so that the next prompt is computed as a whole.
    pub fn forget(&mut self) {
        self.caches.clear();
    }

    /// The machine that computes.
    pub fn compute(&self) -> &dyn Compute {
        &*self.engine
    }

    /// Compiles one more of the kernels that a first answer does not need; `None` when none is
    /// left. The future does not borrow the session, so calls may be made meanwhile. They compile
    /// missing kernels themselves.
    pub fn compile_next(&self) -> Option<impl Future<Output = ()> + use<>> {
        self.engine.compile_next()
    }

    /// Facts about the model, and how it runs.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The model's tokenizer. It can be used while the session generates.
    pub fn tokenizer(&self) -> &Rc<Tokenizer> {
        &self.tokenizer
    }

    /// The model's chat template.
    ///
    /// Errors: `embedding-model` if it does not answer, `unsupported-model` if it has none.
    pub fn template(&self) -> Result<&Rc<Template>> {
        self.check_answers()?;
        self.template.as_ref().ok_or_else(chat::no_template)
    }

    /// The tokens of a conversation that ends with a message of the user. `thinking` says whether
    /// the model is to reason before it answers; with `None`, the template decides.
    ///
    /// Answers that were generated here keep their tokens, so that only new tokens are computed. In
    /// a deterministic session they do not, because there the messages alone decide.
    ///
    /// Errors: those of [`Template::prompt`].
    pub fn chat_prompt(
        &mut self,
        messages: &[Message],
        thinking: Option<bool>,
    ) -> Result<Vec<u32>> {
        self.tools_prompt(messages, None, thinking)
    }

    /// Like [`Session::chat_prompt`], for an answer in which the model may call `tools`.
    pub fn tools_prompt(
        &mut self,
        messages: &[Message],
        tools: Option<&Rc<Tools>>,
        thinking: Option<bool>,
    ) -> Result<Vec<u32>> {
        let asked = self.conversation(messages, None, tools, thinking)?;
        Ok(self.ask(asked))
    }

    /// The tokens of a conversation whose answer begins with the text `begun` and goes on.
    ///
    /// If that answer was generated here, it keeps its tokens, and those of its reasoning. In a
    /// deterministic session it does not. Without them there is no reasoning before the answer.
    ///
    /// Errors: those of [`Template::prompt_begun`].
    pub fn begun_prompt(
        &mut self,
        messages: &[Message],
        begun: &str,
        thinking: Option<bool>,
    ) -> Result<Vec<u32>> {
        let asked = self.conversation(messages, Some(begun), None, thinking)?;
        Ok(self.ask(asked))
    }

    fn ask(&mut self, asked: Conversation) -> Vec<u32> {
        let prompt = asked.prompt.clone();
        self.asked = Some(asked);
        prompt
    }

    /// The prompt of a conversation, with the `begun` text of its answer if there is one. Answers that
    /// were generated here keep their tokens, except in a deterministic session, where the messages
    /// alone decide.
    pub(super) fn conversation(
        &self,
        messages: &[Message],
        begun: Option<&str>,
        tools: Option<&Rc<Tools>>,
        thinking: Option<bool>,
    ) -> Result<Conversation> {
        let (tokenizer, template) = (&*self.tokenizer, self.template()?);
        let asked = Asking { messages, begun, tools, thinking };
        if self.chunks.grid().is_some() {
            return Conversation::new(tokenizer, template, asked, None);
        }
        if let Some(begun) = begun.filter(|begun| !begun.is_empty() && thinking != Some(true)) {
            let mut all = self.caches.conversations();
            let known = all.find_map(|(one, ids)| one.going_on(tokenizer, messages, begun, ids));
            if let Some(known) = known {
                return Ok(known);
            }
        }
        Conversation::new(tokenizer, template, asked, self.last(messages))
    }

    /// The conversation that the cache knows with the most of `messages`, and its tokens. Of two
    /// answers to the same message, the one that was kept counts.
    pub(super) fn last(&self, messages: &[Message]) -> Option<(&Conversation, &[u32])> {
        self.caches.conversations().rev().max_by_key(|(one, tokens)| {
            let shared = one.shared_messages(messages);
            (shared, one.is_answered(&self.tokenizer, messages, tokens))
        })
    }

    /// The best rate of the GPU's memory, in GB/s, which is that of a kernel that only reads.
    /// Measured once.
    pub async fn bandwidth(&self) -> Result<f64> {
        self.engine.bandwidth().await
    }

    /// Bytes of weights, keys, values and activations that one greedy decode step reads and writes
    /// with `pos` tokens in the cache. Bytes that it reads several times count once.
    pub fn bytes_per_token(&self, pos: usize) -> u64 {
        self.engine.bytes_per_token(pos)
    }

    /// The time of each kernel in one step of `n_tokens` after `pos` tokens. One token is decoded.
    /// Several are computed as a prompt of at most one chunk. `choosing` says how the next token is
    /// chosen. This overwrites the KV cache.
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

    /// Keeps as many steps in flight as if each took `time`, instead of its real time. For tests,
    /// which should do the same on every machine.
    pub fn suppose_steps_of(&mut self, time: Duration) {
        self.pace.suppose(time);
    }
}

/// Bytes of a position of the KV cache, in all blocks.
pub(super) fn bytes_per_position(engine: &dyn Compute) -> u64 {
    (engine.cache_buffers() * engine.position_bytes()) as u64
}
