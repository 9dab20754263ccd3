//! Reads back values from within the model.

use super::block::{Blocks, SHORT, Site, Width};
use super::forward;
use super::on_gpu::Engine;
use crate::error::{Error, Result};
use crate::gpu::{Readback, Recorder};
use crate::model::Config;

impl Engine {
    /// Puts `ids` through the first `blocks` blocks at `pos`, and reads the residual stream of
    /// every token `[n_tokens, n_embd]`. Afterwards the KV cache of these blocks holds the tokens.
    ///
    /// Errors: `bad-option` if `blocks` is 0 or more than the model has, or if there are no tokens
    /// or more than [`Engine::chunk`].
    pub fn hidden_states(&self, ids: &[u32], pos: usize, blocks: usize) -> Result<Readback<f32>> {
        self.check_tap(ids, blocks.wrapping_sub(1))?;
        let step = self.begin(ids, pos);
        let plan = self.layers(step.n_tokens).segments(0..blocks);
        let len = ids.len() * self.config.n_embd;
        Ok(self.gpu.run_and_read(&[&plan], &step, &self.state.x, len))
    }

    /// Puts `ids` through the layers at `pos`, as far as `site` of `block`, and reads the values
    /// there for every token `[n_tokens, n]`. After [`Site::Qkv`] these are the products before
    /// they are rotated, `[n_q + 2 n_kv]`. After [`Site::GateUp`] they are the gated activation
    /// `[n_ff]`. After the other sites they are the residual stream `[n_embd]`. Afterwards the KV
    /// cache of the blocks up to there holds the tokens.
    ///
    /// Errors: `bad-option` if there is no such block, or if there are no tokens or more than
    /// [`Engine::chunk`].
    pub fn values_at(
        &self,
        ids: &[u32],
        pos: usize,
        block: usize,
        site: Site,
    ) -> Result<Readback<f32>> {
        let Self { gpu, config, weights, state, .. } = self;
        self.check_tap(ids, block)?;
        let n_qkv = config.n_embd_q() + 2 * config.n_embd_kv();
        let (values, n) = match site {
            Site::Qkv => (&state.qkv, n_qkv),
            Site::GateUp => (&state.ff, config.n_ff),
            Site::Output | Site::Down => (&state.x, config.n_embd),
        };
        let width = match ids.len() {
            1 => Width::One,
            ..=SHORT => Width::Short,
            _ => Width::Chunk,
        };
        let mut recorder = Recorder::new(gpu, &state.step);
        let mut blocks = Blocks::new(&recorder, config, weights, state, width);
        if matches!(site, Site::Qkv | Site::GateUp) {
            blocks = blocks.apart();
        }
        forward::blocks(&mut recorder, &blocks, block..block + 1, site);
        let (step, last) = (self.begin(ids, pos), recorder.finish());
        let before = self.layers(step.n_tokens).segments(0..block);
        Ok(gpu.run_and_read(&[&before, &last], &step, values, ids.len() * n))
    }

    fn check_tap(&self, ids: &[u32], block: usize) -> Result<()> {
        let bad = |name: &str, why| Err(Error::BadOption { name: name.into(), why });
        let Config { n_layer, .. } = self.config;
        if block >= n_layer {
            return bad("block", format!("there is no such block, the model has {n_layer}"));
        }
        if ids.is_empty() || ids.len() > self.chunk() {
            return bad("tokens", format!("{}, not 1 to {}", ids.len(), self.chunk()));
        }
        Ok(())
    }
}
