//! The model on the GPU: the same steps as [`crate::reference`], recorded once and replayed.
//!
//! What is fixed is the [`Config`], what is loaded the [`Weights`], what changes the [`State`].

mod forward;
mod state;
mod weights;

use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelTime, Plan, Readback, Recorder, Step};
use crate::model::{Config, Weight};
use crate::sampling::Sampling;
use crate::source::{Reader, Source};

use state::State;
use weights::Weights;

/// How to hold the model.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Tokens of KV cache; `None` is the model's own limit, or what fits.
    pub context: Option<usize>,
    /// Hold the KV cache as f32 instead of f16.
    pub kv_f32: bool,
    /// The file's ternary codes are in the layout of ARM builds (64-element blocks).
    pub i2s_arm: bool,
}

/// Told while a model loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// So many of the file's bytes are on the GPU.
    Upload {
        /// Bytes read and uploaded.
        loaded: u64,
        /// Bytes in the file.
        total: u64,
    },
    /// The bytes are there; what is left of compiling the kernels is awaited, and each is run once.
    Compile,
}

/// A model on a GPU with one KV cache. Positions are the caller's: nothing here remembers them.
pub struct Engine {
    gpu: Gpu,
    config: Config,
    state: State,
    plans: Plans,
    /// Keeps the buffers that the plans' bind groups refer to together in one place.
    _weights: Weights,
}

/// The recorded work. A step runs one of `decode` and `prefill`, then `head` and one of `greedy`
/// and `sampled` where a token is wanted.
struct Plans {
    /// One token through the layers.
    decode: Plan,
    /// A chunk of tokens through the layers.
    prefill: Plan,
    /// The last token's hidden state to logits.
    head: Plan,
    /// Logits to the best token.
    greedy: Plan,
    /// Logits to a token drawn by temperature, top-k, top-p and min-p.
    sampled: Plan,
}

impl Engine {
    /// Moves the tensors of `table` from `reader` to `gpu`, piece by piece, and records the plans.
    ///
    /// Errors: `unsupported-model`, `bad-option` (context), `out-of-memory`, `bad-gguf` (values
    /// that no model has), and those of the source.
    pub async fn load<S: Source>(
        gpu: Gpu,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        check_shape(&config)?;
        let weights = Weights::allocate(&gpu, &config, table).await?;
        let state = State::allocate(&gpu, &config, options).await?;
        // Before the bytes come: browsers compile beside this thread, while it waits for them.
        let mut recorder = Recorder::new(&gpu);
        let plans = Plans {
            decode: forward::layers(&mut recorder, &config, &weights, &state, 1),
            prefill: forward::layers(&mut recorder, &config, &weights, &state, state.chunk),
            head: forward::head(&mut recorder, &config, &weights, &state),
            greedy: forward::sample(&mut recorder, &state, false),
            sampled: forward::sample(&mut recorder, &state, true),
        };
        weights::load(&gpu, &config, &weights, table, reader, options.i2s_arm, progress).await?;
        progress(Progress::Compile);
        let engine = Self { gpu, config, state, plans, _weights: weights };
        engine.warm_up().await?;
        Ok(engine)
    }

    /// Runs every kernel once: browsers and drivers compile on first use, and a generation is not
    /// to wait for that. What it leaves in the cache is overwritten before it is read.
    async fn warm_up(&self) -> Result<()> {
        self.set_sampling(&Sampling { temperature: 1.0, top_p: 0.5, ..Sampling::default() });
        let prefilled = self.prefill(&vec![0; self.chunk().min(2)], 0);
        let decoded = self.decode_and_sample(0, false);
        prefilled.take(&self.gpu).await?;
        decoded.take(&self.gpu).await?;
        self.gpu.check()
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The model's sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tokens the KV cache holds.
    pub fn n_ctx(&self) -> usize {
        self.state.n_ctx
    }

    /// The most tokens one call of [`Engine::prefill`] takes.
    pub fn chunk(&self) -> usize {
        self.state.chunk
    }

    /// The kernels in use, each once, with their variants.
    pub fn kernels(&self) -> Vec<String> {
        let plans = &self.plans;
        let all = [&plans.decode, &plans.prefill, &plans.head, &plans.sampled];
        let mut kernels: Vec<String> =
            all.iter().flat_map(|p| p.labels()).map(Into::into).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    }

    /// Dispatches of one greedy decode step.
    pub fn dispatches_per_token(&self) -> usize {
        self.plans.decode.len() + self.plans.head.len() + self.plans.greedy.len()
    }

    /// Sets how the tokens that follow are chosen.
    pub fn set_sampling(&self, sampling: &Sampling) {
        self.gpu.write(&self.state.sampling, 0, &[sampling.into()]);
    }

    /// Puts at most [`Engine::chunk`] tokens through the layers, filling the KV cache from `pos` on,
    /// and answers when they are done.
    ///
    /// The caller has checked the ids and that `pos + ids.len()` is within the context.
    pub fn prefill(&self, ids: &[u32], pos: usize) -> Readback<u32> {
        let step = self.begin(ids, pos);
        self.gpu.run_and_read(&[self.layers(&step)], &step, &self.state.sampled, 1)
    }

    /// Like [`Engine::prefill`], and chooses the token that follows.
    pub fn prefill_and_sample(&self, ids: &[u32], pos: usize, greedy: bool) -> Readback<u32> {
        let step = self.begin(ids, pos);
        self.run_to_token(&step, greedy)
    }

    /// Like [`Engine::prefill`], and reads the logits `[n_vocab]` after the last token.
    pub fn prefill_and_read(&self, ids: &[u32], pos: usize) -> Readback<f32> {
        let step = self.begin(ids, pos);
        let plans = [self.layers(&step), &self.plans.head];
        self.gpu.run_and_read(&plans, &step, &self.state.logits, self.config.n_vocab)
    }

    /// Puts the token chosen last, which is still on the GPU, through the layers at `pos` and chooses
    /// the one that follows. Several calls may be in flight.
    pub fn decode_and_sample(&self, pos: usize, greedy: bool) -> Readback<u32> {
        let step = self.state.step(pos, 1);
        self.gpu.write(&self.state.step, 0, &[step]);
        self.run_to_token(&step, greedy)
    }

    /// The time of each kernel in one greedy decode step with `pos` tokens in the cache.
    ///
    /// Errors: `missing-feature` without timestamp queries.
    pub async fn profile(&self, pos: usize) -> Result<Vec<KernelTime>> {
        let step = self.state.step(pos, 1);
        self.gpu.write(&self.state.step, 0, &[step]);
        let plans = [&self.plans.decode, &self.plans.head, &self.plans.greedy];
        self.gpu.profile(&plans, &step).await
    }

    fn run_to_token(&self, step: &Step, greedy: bool) -> Readback<u32> {
        let sample = if greedy { &self.plans.greedy } else { &self.plans.sampled };
        let plans = [self.layers(step), &self.plans.head, sample];
        self.gpu.run_and_read(&plans, step, &self.state.sampled, 1)
    }

    fn layers(&self, step: &Step) -> &Plan {
        if step.n_tokens == 1 { &self.plans.decode } else { &self.plans.prefill }
    }

    fn begin(&self, ids: &[u32], pos: usize) -> Step {
        let step = self.state.step(pos, ids.len());
        self.gpu.write(&self.state.tokens, 0, ids);
        self.gpu.write(&self.state.step, 0, &[step]);
        step
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.gpu.destroy();
    }
}

/// What the attention kernels ask of a model beyond [`Config`]'s own rules.
fn check_shape(config: &Config) -> Result<()> {
    if !config.head_dim.is_multiple_of(8) || config.head_dim > 512 {
        return Err(Error::UnsupportedModel(format!(
            "heads of {} values; the GPU kernels take multiples of 8 up to 512",
            config.head_dim
        )));
    }
    Ok(())
}
