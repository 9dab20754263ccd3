//! Loads an engine: the weights are uploaded while plans are recorded and kernels compiled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::try_join;

use super::choices::Chosen;
use super::lm_head::{self, Candidates};
use super::on_gpu::Engine;
use super::plans::Plans;
use super::upload::{Upload, Uploaded};
use super::{block, dot, fit, matrix_units};
use crate::compute::{EngineOptions, Progress};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Link, Readback, Recorder};
use crate::model::{Angles, Config, Weight};
use crate::source::{Reader, Source};

/// The steps in flight that run every kernel of a first answer.
struct Warming {
    prompts: Vec<Readback<u32>>,
    tokens: Vec<Chosen>,
}

impl Warming {
    async fn done(self) -> Result<()> {
        for prompt in self.prompts {
            prompt.take().await?;
        }
        for token in self.tokens {
            token.take().await?;
        }
        Ok(())
    }
}

impl Engine {
    /// Loads the tensors of `table` from `reader` to `gpu`, and records the plans.
    ///
    /// Errors: `unsupported-model`, `bad-option` (context, kv), `out-of-memory`, `bad-gguf` (values
    /// that no model has), and those of the source.
    pub async fn load<S: Source>(
        mut gpu: Gpu,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        check_shape(&config)?;
        if !options.deterministic {
            // This measures times, so it must end before anything is uploaded.
            dot::choose(&mut gpu).await?;
        }
        let (residency, mut weights, state) = fit::allocate(&gpu, &config, table, options).await?;
        // If weights are uploaded for each token, reading half of the LM head saves nothing. And its kernels bind
        // several slices at once, but only one slice can be in a bay.
        let splits =
            lm_head::splits(options.lm_head, weights.lm_head(), &gpu)? && residency.is_whole();
        let candidates = match weights.lm_head_mut().dense_mut().filter(|_| splits) {
            Some(w) => {
                let mut recorder = Recorder::new(&gpu, &state.step);
                let approx = [&state.logits, &state.adjusted_upper];
                Some(Candidates::prepare(&mut recorder, w, approx).await?)
            }
            None => None,
        };
        let weights = Rc::new(weights);
        let upload = Upload {
            gpu: Link::clone(&gpu),
            config: &config,
            weights: &weights,
            i2s_arm: options.i2s_arm,
            long_factors: config.rope.takes_long_factors(state.n_ctx),
        };
        let ready = async {
            matrix_units::choose(&mut gpu).await?;
            let mut recorder = Recorder::new(&gpu, &state.step);
            let plans =
                Plans::record(&mut recorder, &config, &weights, &state, candidates.as_ref());
            let slots = state.slots.len();
            let engine = Self {
                gpu,
                config: config.clone(),
                state,
                plans,
                weights: Rc::clone(&weights),
                residency,
                candidates,
                sample: 0,
                first: Cell::default(),
                bandwidth: Cell::default(),
                choosing: vec![RefCell::default(); slots],
                slot: Cell::default(),
            };
            let warming = engine.warm_up().await?;
            Ok((engine, warming))
        };
        // The upload begins first, because recording the plans does not pause. A native upload does
        // not pause either, so there the plans are recorded after it.
        let (uploaded, (mut engine, warming)) =
            try_join(upload.run(table, reader, progress), ready).await?;
        let Self { gpu, state, .. } = &engine;
        let Uploaded { rope_divisors, sample } = uploaded;
        let angles = Angles::new(&config.rope, config.head_dim, rope_divisors.as_deref());
        state.write_rope_table(gpu, &angles);
        progress(Progress::Compile);
        if let Some(candidates) = &engine.candidates {
            candidates.split(gpu);
        }
        warming.done().await?;
        gpu.use_portions();
        // Once a step has read the weights, they are on the GPU.
        engine.decode_and_sample(0, 1).take().await?;
        gpu.check()?;
        engine.sample = sample;
        Ok(engine)
    }

    /// Compiles the kernels of an answer with default options (on a CPU, of one to a short prompt),
    /// and submits all of them once. Drivers do more work on first use, and no answer should wait
    /// for that. It does not need the weights, so it does not wait for their bytes. Its keys and
    /// values in the cache are overwritten before they are read.
    async fn warm_up(&self) -> Result<Warming> {
        let greedy = self.greedy(1);
        let Plans { short, prefill, .. } = &self.plans;
        let split = self.candidates.as_ref().map(Candidates::splitting);
        let warms_long = self.gpu.tuning.warms_long;
        let long = warms_long.then_some(prefill);
        let plans = [short].into_iter().chain(greedy).chain(long).chain(split);
        self.gpu.compile(plans).await;
        let prompt = |n: usize| {
            let tokens = self.chunk().min(self.n_ctx()).min(n);
            self.prefill(&vec![0; tokens], 0, 0..tokens)
        };
        let mut prompts = vec![prompt(2)];
        let mut tokens = vec![self.decode_and_sample(0, 1)];
        if warms_long {
            prompts.push(prompt(block::SHORT + 1));
            tokens.extend(self.state.later_positions().map(|pos| self.decode_and_sample(pos, 1)));
        }
        Ok(Warming { prompts, tokens })
    }
}

/// Refuses shapes that the attention kernels cannot compute, beyond the rules of [`Config`].
fn check_shape(config: &Config) -> Result<()> {
    if !config.head_dim.is_multiple_of(8) || config.head_dim > 512 {
        return Err(Error::UnsupportedModel(format!(
            "heads of {} values; the GPU kernels take multiples of 8 up to 512",
            config.head_dim
        )));
    }
    Ok(())
}
