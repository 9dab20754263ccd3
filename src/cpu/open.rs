//! Opens the CPU for a session.

use std::future::ready;

use super::cache::{Cache, CacheShape};
use super::forward::{Buffers, Cpu};
use super::machine::InstructionSet;
use super::pool::Pool;
use super::trial;
use super::weights::{Loader, weight_bytes};
use crate::compute::{Compute, EngineOptions, Opening, Progress};
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::host::{Host, HostTraits};
use crate::model::{Angles, Config, Role, Weight};
use crate::source::{Reader, Source};

/// Bytes of KV cache that are taken by default. A caller who wants a larger context asks for it.
const MAX_CACHE: u64 = 1 << 30;

/// Tokens below which the default context is not cut for lack of memory.
const MIN_CONTEXT: usize = 256;

/// The most threads.
const MAX_THREADS: usize = 1024;

/// Tokens of a chunk. More would hardly make a prompt faster, and an abort would wait for them.
const CHUNK: usize = 32;

/// Tokens of a pass of several sequences. Their logits are in memory together.
const PASS: usize = 32;

/// Opens the CPU for a session.
#[derive(Clone, Debug, Default)]
pub struct OnCpu {
    /// How many threads compute; `None`: as many as run at once. In a page `page` says it.
    pub threads: Option<usize>,
    /// The threads of a page; `None`: one.
    #[cfg(all(target_arch = "wasm32", feature = "threads"))]
    pub page: Option<super::machine::PageThreads>,
    /// The instruction set to use, for tests; `None`: the best one.
    pub instructions: Option<InstructionSet>,
    /// How a session uses it, for tests; `None`: as is best.
    pub traits: Option<HostTraits>,
    /// A sentence for people on why the CPU computes.
    pub note: Option<String>,
}

impl Opening for OnCpu {
    type Opened = Self;

    fn open(self) -> impl Future<Output = Result<Self>> {
        ready(match self.threads {
            Some(n) if !(1..=MAX_THREADS).contains(&n) => Err(Error::BadOption {
                name: "threads".into(),
                why: format!("must be at least 1 and at most {MAX_THREADS}"),
            }),
            _ => Ok(self),
        })
    }

    async fn load<S: Source>(
        opened: Self,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        check_shape(&config)?;
        let split = split(&config, table, options)?;
        let shape = CacheShape::new(&config, options.kv);
        let asked = options.context_within(config.n_ctx)?;
        let pool = opened.pool();
        let threads = pool.threads();
        let fixed = weight_bytes(&config, table) + step_bytes(&config);
        let beside = |n_ctx| fixed + Buffers::bytes(threads, n_ctx);
        // The cache comes first, because a model without room for it is not worth reading.
        let (cache, n_ctx) = with_cache(&config, shape, asked, beside)?;
        let by_default = default_context(&config, shape);
        let shorter = (asked.is_none() && n_ctx < by_default).then(|| {
            format!("the context has {n_ctx} tokens, because memory does not hold {by_default}")
        });
        let available = InstructionSet::available();
        let sets = match opened.instructions {
            Some(set) => vec![set],
            None => available,
        };
        let mut loader = Loader {
            reader,
            config: &config,
            options,
            sets: &sets,
            n_ctx,
            chosen: Vec::new(),
            split,
        };
        let weights = loader.load(table, progress).await?;
        progress(Progress::Compile);
        let chosen = loader.chosen;
        let best = sets.first().copied().unwrap_or(InstructionSet::SCALAR);
        let upper =
            weights.lm_head().split.iter().map(|split| ("upper bytes".to_owned(), split.set));
        let of_types = chosen.iter().map(|(ty, set)| (ty.to_string(), *set));
        let sets_of: Vec<(String, InstructionSet)> = of_types.chain(upper).collect();
        let kernels = sets_of.iter().map(|(name, set)| format!("{name}/{}", set.name())).collect();
        let set = InstructionSet::first_of(&sets, |set| trial::is_right(set, shape));
        let notes =
            sets_of.into_iter().chain([("attention".to_owned(), set)]).filter_map(|(what, set)| {
                let (best, set) = (set != best).then_some((best.name(), set.name()))?;
                Some(format!(
                    "{what} is computed with {set}, because its {best} code fails its test here"
                ))
            });
        let angles = Angles::new(&config.rope, config.head_dim, weights.rope_divisors.as_deref());
        let cpu = Cpu {
            notes: opened.note.iter().cloned().chain(notes).chain(shorter).collect(),
            kernels,
            weights,
            cache,
            angles,
            pool,
            set,
            best,
            sets: sets.clone(),
            deltas: None,
            buffers: Buffers::new(threads, n_ctx),
            config,
        };
        let traits = opened.traits.unwrap_or(HostTraits {
            chunk: CHUNK,
            pass: PASS,
            prompt_lookup: true,
            ..HostTraits::default()
        });
        Ok(Box::new(Host::new(cpu, n_ctx, traits)))
    }
}

impl OnCpu {
    fn pool(&self) -> Box<dyn Pool> {
        #[cfg(all(target_arch = "wasm32", feature = "threads"))]
        if let Some(threads) = &self.page {
            return Box::new(threads.clone());
        }
        pool(self.threads)
    }
}

/// The tensor of the LM head, if it is to be split. That was faster on the CPUs that were measured.
///
/// Errors: `bad-option` if it cannot be split, but the caller asks for it.
fn split(config: &Config, table: &[Weight], options: &EngineOptions) -> Result<Option<Role>> {
    let of = |role: Role| table.iter().find(|weight| weight.role == role);
    let Some(weight) = of(Role::Output).or_else(|| of(Role::TokenEmbd)) else { return Ok(None) };
    let is_f16 = weight.tensor.ty == TensorType::F16;
    let splits = options.lm_head.splits(is_f16, [config.n_vocab, config.n_embd], true)?;
    Ok(splits.then_some(weight.role))
}

/// The tokens of context, if none are asked for and there is enough memory.
fn default_context(config: &Config, shape: CacheShape) -> usize {
    // In u64, because the sizes of a hostile file may not fit into the 32 bits of a page.
    let position = 2 * config.n_layer as u64 * shape.row_bytes() as u64;
    config.n_ctx.min((MAX_CACHE / position).max(1) as usize)
}

/// A KV cache, and its tokens of context, for which `beside` gives the further bytes to leave memory for. Unless a
/// context is asked for, it becomes shorter until there is the memory.
///
/// Errors: `out-of-memory`.
fn with_cache(
    config: &Config,
    shape: CacheShape,
    asked: Option<usize>,
    beside: impl Fn(usize) -> u64,
) -> Result<(Cache, usize)> {
    let mut n_ctx = asked.unwrap_or_else(|| default_context(config, shape));
    loop {
        // The room is given back, but in WebAssembly memory that has grown never shrinks.
        let room = Room::new(beside(n_ctx))?;
        let cache = Cache::new(shape, config.n_layer, n_ctx);
        drop(room);
        match cache {
            Err(_) if asked.is_none() && n_ctx > MIN_CONTEXT => {
                n_ctx = (n_ctx / 2).max(MIN_CONTEXT);
            }
            cache => return Ok((cache?, n_ctx)),
        }
    }
}

/// Memory that is held for later.
struct Room(#[allow(dead_code, reason = "it is only held")] Vec<Vec<u8>>);

impl Room {
    /// In parts, because one could not be larger than half the addresses.
    const PART: u64 = 64 << 20;

    /// Errors: `out-of-memory`.
    fn new(bytes: u64) -> Result<Self> {
        let mut parts = Vec::new();
        for at in (0..bytes).step_by(Self::PART as usize) {
            let mut part = Vec::new();
            let len = (bytes - at).min(Self::PART) as usize;
            part.try_reserve_exact(len).map_err(|_| Error::OutOfMemory {
                what: "the model's weights".into(),
                needed: bytes,
                granted: at,
            })?;
            parts.push(part);
        }
        Ok(Self(parts))
    }
}

/// Bytes of the values of the largest pass. A call must not run out of memory, so a load makes sure
/// that there is so much of it.
fn step_bytes(config: &Config) -> u64 {
    let widest = 8 * (config.n_embd + config.n_embd_q()) + 4 * config.n_ff;
    // The logits of a pass are there as products, as logits, and adjusted.
    let of_token = 4 * widest as u64 + 3 * 4 * config.n_vocab as u64;
    CHUNK.max(PASS) as u64 * of_token
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) fn pool(threads: Option<usize>) -> Box<dyn Pool> {
    use super::machine::Threads;
    Box::new(Threads::new(threads.unwrap_or_else(Threads::default_number)))
}

#[cfg(target_arch = "wasm32")]
pub(super) fn pool(_threads: Option<usize>) -> Box<dyn Pool> {
    Box::new(super::pool::Alone)
}

/// Refuses shapes that the kernels cannot compute, beyond the rules of [`Config`].
fn check_shape(config: &Config) -> Result<()> {
    if config.head_dim.is_multiple_of(8) {
        return Ok(());
    }
    let why = format!("heads of {} values; they must be a multiple of 8", config.head_dim);
    Err(Error::UnsupportedModel(why))
}
