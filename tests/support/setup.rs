//! Loads the models of the tests and runs generations.
#![allow(dead_code, reason = "each test crate uses a part")]

use std::fs;
use std::future::ready;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tritloom::Result;
use tritloom::compute::Depth;
use tritloom::cpu::{InstructionSet, OnCpu};
use tritloom::engine::Engine;
use tritloom::gguf::Gguf;
use tritloom::gpu::{Gpu, GpuOptions};
use tritloom::host::HostTraits;
use tritloom::model::{Config, weights::weights};
use tritloom::native::block_on;
use tritloom::reference::OnReference;
use tritloom::sampling::Logprobs;
use tritloom::session::{GenerateOptions, KvType, LmHead, LoadOptions, Session, Stats};
use tritloom::source::Reader;

use crate::support::adapters::Adapted;
use crate::support::families::{Expected, distance};
use crate::support::{File, Kv, open, path, tiny};

/// How a test loads and runs its model.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) gpu: GpuOptions,
    pub(crate) load: LoadOptions,
    /// Use the tuning of a graphics card, even if the adapter is a CPU.
    pub(crate) like_a_card: bool,
    /// Submit several steps at once, as for a fast card.
    pub(crate) like_a_fast_card: bool,
    /// Prompt tokens of a prefill step, at most; `None`: as many as the adapter is tuned for.
    pub(crate) chunk: Option<usize>,
    /// Threads of the CPU; `None`: one, because tests run side by side.
    pub(crate) threads: Option<usize>,
    /// Tokens of a pass of several sequences, at most, on the reference or the CPU.
    pub(crate) pass: Option<usize>,
    /// The machine that computes.
    pub(crate) on: On,
    /// Open a device that no other test uses.
    pub(crate) on_own_device: bool,
}

/// The machine that computes.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum On {
    #[default]
    Gpu,
    /// Plain Rust, which needs no GPU.
    Reference,
    /// The CPU, with these instructions, or its best ones.
    Cpu(Option<InstructionSet>),
}

/// The devices that tests share, by their options. A pipeline that one test compiles serves the
/// others.
static DEVICES: Mutex<Vec<(String, Gpu)>> = Mutex::new(Vec::new());

impl Setup {
    pub(crate) fn open(&self) -> Gpu {
        let mut gpu = if self.on_own_device { self.new_device() } else { self.shared_device() };
        gpu.tuning.chunk = self.chunk.unwrap_or(gpu.tuning.chunk);
        gpu
    }

    fn new_device(&self) -> Gpu {
        block_on(Gpu::open(&self.gpu))
            .expect("these tests need a GPU adapter; Mesa's llvmpipe will do")
    }

    fn shared_device(&self) -> Gpu {
        let options = format!("{:?}", self.gpu);
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|(_, gpu)| !gpu.is_lost() && gpu.check().is_ok());
        if let Some((_, gpu)) = devices.iter().find(|(other, _)| *other == options) {
            return gpu.share();
        }
        let gpu = self.new_device();
        let shared = gpu.share();
        devices.push((options, gpu));
        shared
    }

    pub(crate) fn on_own_device(mut self) -> Self {
        self.on_own_device = true;
        self
    }

    pub(crate) fn load(&self, bytes: &[u8]) -> Result<Session> {
        let mut reader = Reader::new(bytes);
        let load = &self.load;
        let mut session = match self.on {
            On::Gpu => {
                let gpu = ready(Ok(self.open()));
                block_on(Session::load(gpu, &mut reader, load, &mut |_| {}))?
            }
            On::Reference => {
                let reference = OnReference { traits: self.host_traits() };
                block_on(Session::load(reference, &mut reader, load, &mut |_| {}))?
            }
            On::Cpu(instructions) => {
                let traits = Some(self.host_traits());
                let threads = Some(self.threads.unwrap_or(1));
                let cpu = OnCpu { instructions, traits, threads, ..OnCpu::default() };
                block_on(Session::load(cpu, &mut reader, load, &mut |_| {}))?
            }
        };
        if self.like_a_fast_card {
            session.suppose_steps_of(Duration::from_millis(1));
        }
        Ok(session)
    }

    /// How a session uses the reference or the CPU, with as many steps in flight as a card would have.
    fn host_traits(&self) -> HostTraits {
        let traits = HostTraits::default();
        let depth = Depth { max_batches: 6, max_batch_steps: 4 };
        HostTraits {
            chunk: self.chunk.unwrap_or(traits.chunk),
            depth: if self.like_a_card { depth } else { traits.depth },
            prompt_lookup: self.like_a_card,
            pass: self.pass.unwrap_or(traits.pass),
        }
    }

    pub(crate) fn on_reference(mut self) -> Self {
        self.on = On::Reference;
        self
    }

    pub(crate) fn on_cpu(mut self) -> Self {
        self.on = On::Cpu(None);
        self
    }

    /// The CPU, with these instructions.
    pub(crate) fn with(mut self, instructions: InstructionSet) -> Self {
        self.on = On::Cpu(Some(instructions));
        self
    }

    pub(crate) fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The bundled model.
    pub(crate) fn bundled(&self) -> Session {
        self.load(&fs::read(path("models/tiny-stories.gguf")).unwrap()).unwrap()
    }

    /// The random model of [`small`].
    pub(crate) fn small(&self) -> Session {
        self.load(&small().build()).unwrap()
    }

    /// The model of two layers in which every golden token has a large lead.
    pub(crate) fn golden(&self) -> Session {
        self.load(&fs::read(path("tests/data/golden/golden.gguf")).unwrap()).unwrap()
    }

    pub(crate) fn no_subgroups(mut self) -> Self {
        self.gpu.features.subgroups = Some(false);
        self
    }

    /// Ask the adapter for no more than every adapter has.
    pub(crate) fn minimal(mut self) -> Self {
        self.gpu.minimal = true;
        self
    }

    pub(crate) fn like_a_card(mut self) -> Self {
        self.like_a_card = true;
        self.gpu.features.software = Some(false);
        // Do not time both products: in every test, that takes too long.
        self.gpu.features.packed_dot = Some(true);
        // Half of a card's: prompts of several chunks are shorter then.
        self.chunk = Some(512);
        self
    }

    pub(crate) fn like_a_fast_card(mut self) -> Self {
        self.like_a_fast_card = true;
        self.like_a_card()
    }

    pub(crate) fn packed_dot(mut self, packed: Option<bool>) -> Self {
        self.gpu.features.packed_dot = packed;
        self
    }

    pub(crate) fn kv(mut self, kv: KvType) -> Self {
        self.load.engine.kv = kv;
        self
    }

    pub(crate) fn float_activations(mut self) -> Self {
        self.load.engine.float_activations = true;
        self
    }

    /// Nothing is rounded to fewer bits than f32, but for the inputs of matrices of I2_S.
    pub(crate) fn exact() -> Self {
        Self::default().float_activations().kv(KvType::F32)
    }

    pub(crate) fn lm_head(mut self, lm_head: LmHead) -> Self {
        self.load.engine.lm_head = lm_head;
        self
    }

    pub(crate) fn context(mut self, context: usize) -> Self {
        self.load.engine.context = Some(context);
        self
    }
}

/// Compares models with what is expected of them. All tokens come at once up to the first expected
/// position, and then one by one.
pub(crate) fn check_families(
    expectations: Vec<Expected>,
    setup: impl Fn() -> Setup,
    allowed: impl Fn(&Expected) -> f64,
) {
    let mut bad = Vec::new();
    for expected in expectations {
        let Expected { model, name, ids, first, logits, .. } = &expected;
        let bytes = fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap();
        let mut session = setup().context(expected.context).load(&bytes).unwrap();
        let found: Vec<f32> = (first + 1..=ids.len())
            .flat_map(|n| block_on(session.logits(&ids[..n])).unwrap())
            .collect();
        let off = distance(&found, logits);
        if off > allowed(&expected) {
            bad.push(format!("{name}: {off:.2e}"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Compares models with adapters with what is expected of them. All tokens come at once, and then one by
/// one.
pub(crate) fn check_adapted(
    expectations: Vec<Adapted>,
    setup: impl Fn() -> Setup,
    allowed: impl Fn(&Adapted) -> f64,
) {
    let mut bad = Vec::new();
    for expected in expectations {
        let Adapted { model, name, ids, logits, .. } = &expected;
        let bytes = fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap();
        let mut session = setup().context(expected.context).load(&bytes).unwrap();
        let mut load = |(name, scale): &(String, f32)| {
            let adapter = block_on(session.load_adapter(&mut open(&Adapted::path(name)))).unwrap();
            (adapter, *scale)
        };
        let adapters: Vec<_> = expected.adapters.iter().map(&mut load).collect();
        block_on(session.set_adapters(&adapters)).unwrap();
        let n_vocab = logits.len() / ids.len();
        let found = block_on(session.logits(ids)).unwrap();
        let last = distance(&found, &logits[logits.len() - n_vocab..]);
        session.forget();
        let found: Vec<f32> =
            (1..=ids.len()).flat_map(|n| block_on(session.logits(&ids[..n])).unwrap()).collect();
        let off = distance(&found, logits);
        // One row scatters more than all of them.
        if off > allowed(&expected) || last > 2.0 * allowed(&expected) {
            bad.push(format!("{name}: {off:.2e}, the last alone {last:.2e}"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A random model of two blocks, with a context of a few chunks.
pub(crate) fn small() -> File {
    let mut file = tiny();
    let arch = "bitnet-b1.58";
    file.set(&format!("{arch}.context_length"), Kv::U32(1024));
    file.set(&format!("{arch}.block_count"), Kv::U32(2));
    let block = |name: &str| name.strip_prefix("blk.")?.split('.').next()?.parse().ok();
    file.tensors.retain(|tensor| block(&tensor.name).is_none_or(|block: u32| block < 2));
    file
}

/// An engine with the model of [`small`] and a longer context. For tests that run steps themselves.
pub(crate) fn engine(setup: &Setup) -> Engine {
    let mut file = small();
    file.set("bitnet-b1.58.context_length", Kv::U32(2200));
    engine_of(setup, &file.build())
}

/// An engine with the model in `bytes`.
pub(crate) fn engine_of(setup: &Setup, bytes: &[u8]) -> Engine {
    let mut reader = Reader::new(bytes);
    block_on(async {
        let gguf = Gguf::read(&mut reader).await.unwrap();
        let config = Config::from_gguf(&gguf).unwrap();
        let table = weights(&config, &gguf).unwrap();
        let options = &setup.load.engine;
        Engine::load(setup.open(), config, &table, &mut reader, options, &mut |_| {}).await.unwrap()
    })
}

/// `n` meaningless tokens of the vocabulary of [`small`].
pub(crate) fn noise(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| (i * i + 7 * i) % 264).collect()
}

/// A prompt with the reference's results.
#[derive(Deserialize)]
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) first: Top,
    pub(crate) last: Top,
    pub(crate) greedy: Vec<u32>,
    pub(crate) greedy_text: String,
    pub(crate) greedy_stopped: bool,
    pub(crate) greedy_margins: Vec<f32>,
}

/// The ten best tokens and their logits.
#[derive(Deserialize)]
pub(crate) struct Top {
    pub(crate) ids: Vec<usize>,
    pub(crate) logits: Vec<f32>,
}

#[derive(Deserialize)]
pub(crate) struct Goldens {
    pub(crate) prompts: Vec<Golden>,
}

impl Goldens {
    /// The goldens of the bundled model.
    pub(crate) fn bundled() -> Self {
        Self::read("models/tiny-stories.goldens.json")
    }

    /// The goldens of the model of two layers.
    pub(crate) fn golden() -> Self {
        Self::read("tests/data/golden/golden.json")
    }

    fn read(name: &str) -> Self {
        let text = fs::read_to_string(path(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn prompt(&self, name: &str) -> &Golden {
        self.prompts.iter().find(|golden| golden.name == name).expect(name)
    }
}

impl Golden {
    /// The greedy tokens without the stop token: a generation does not yield it.
    pub(crate) fn expected(&self) -> &[u32] {
        &self.greedy[..self.greedy.len() - usize::from(self.greedy_stopped)]
    }
}

/// The result of a generation.
pub(crate) struct Output {
    pub(crate) ids: Vec<u32>,
    /// The ids with the log-probabilities of each.
    pub(crate) logprobs: Vec<(u32, Option<Logprobs>)>,
    pub(crate) text: String,
    pub(crate) stats: Stats,
}

/// Runs a generation to its end.
pub(crate) fn generate(
    session: &mut Session,
    ids: &[u32],
    options: &GenerateOptions,
) -> Result<Output> {
    let (mut found, mut logprobs, mut text) = (Vec::new(), Vec::new(), String::new());
    let stats = block_on(session.generate(ids, options, &mut |token| {
        if let Some(id) = token.id {
            found.push(id);
            logprobs.push((id, token.logprobs));
        }
        text += &token.text;
        ControlFlow::Continue(())
    }))?;
    assert_eq!(stats.prompt_tokens, ids.len());
    assert_eq!(stats.completion_tokens, found.len());
    Ok(Output { ids: found, logprobs, text, stats })
}

/// Options for at most `max_tokens` greedy tokens.
pub(crate) fn greedy(max_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens: Some(max_tokens), ..GenerateOptions::default() }
}

/// The best token; among equals, the lowest id.
pub(crate) fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub(crate) fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
