//! Reads back values from within the model.

use super::block::{Blocks, SHORT, Width};
use super::forward;
use super::on_gpu::Engine;
use crate::compute::{Site, Span, Tap};
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Plan, Readback, Recorder, Step};
use crate::model::Config;

impl Engine {
    /// Puts `ids` through the first `blocks` blocks at `pos`, and reads the residual stream of
    /// every token `[n_tokens, n_embd]`. Afterwards the KV cache of these blocks holds the tokens.
    ///
    /// Errors: `bad-option` if `blocks` is 0 or more than the model has, or if there are no tokens
    /// or more than [`Engine::chunk`].
    pub fn hidden_states(&self, ids: &[u32], pos: usize, blocks: usize) -> Result<Readback<f32>> {
        self.check_tap(ids, blocks.wrapping_sub(1))?;
        let step = self.begin(ids, pos, pos);
        let plan = self.layers(step.n_tokens).segments(0..blocks);
        let len = ids.len() * self.config.n_embd;
        Ok(self.gpu.run_and_read(&[&plan], &step, &self.state.x, len))
    }

    /// Computes `ids` from position `pos` on, up to `site` of `block`. Gives the values there for
    /// every token, `[n_tokens, n]`; [`Site`] says what they are. The tokens are in the KV cache of
    /// the blocks up to there.
    ///
    /// This is the way of prompts and of single tokens. [`Engine::pass_and_tap`] is that of passes.
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
        self.check_tap(ids, block)?;
        let width = match ids.len() {
            1 => Width::One,
            ..=SHORT => Width::Short,
            _ => Width::Chunk,
        };
        let last = self.block_as_far_as(width, block, site);
        let step = self.begin(ids, pos, pos);
        let before = self.layers(step.n_tokens).segments(0..block);
        let (values, n) = (self.values(site), ids.len() * site.width(&self.config));
        Ok(self.gpu.run_and_read(&[&before, &last], &step, values, n))
    }

    /// Like [`Engine::pass`] as far as `tap`, and reads the values there for each of `chosen`,
    /// `[n_chosen, n]`: see [`Tap::width`].
    ///
    /// Errors: those of [`Span::check_all`] and [`Tap::check`].
    pub fn pass_and_tap(
        &self,
        spans: &[Span<'_>],
        chosen: &[usize],
        tap: Tap,
    ) -> Result<Readback<f32>> {
        let Self { gpu, plans, state, config, .. } = self;
        Span::check_all(spans, self.chunk())?;
        tap.check(config, spans, chosen)?;
        let row = tap.width(config);
        Ok(match tap {
            Tap::Product(block, site) => {
                self.run_pass(spans, Some((block, site)));
                gpu.run_and_read_rows(&[], &Step::default(), self.values(site), row, chosen)
            }
            Tap::Queries(block) => {
                self.run_pass(spans, Some((block, Site::Qkv)));
                gpu.run_and_read_rows(&[], &Step::default(), &state.q, row, chosen)
            }
            Tap::Hidden => {
                self.run_pass(spans, None);
                let n_tokens = spans.iter().map(|span| span.ids.len() as u32).sum();
                let step = Step { n_tokens, ..Step::default() };
                gpu.write(&state.step, 0, &[step]);
                gpu.run_and_read_rows(&[&plans.hidden], &step, &state.hidden, row, chosen)
            }
        })
    }

    /// Records a block alone, up to the product of `site`.
    pub(super) fn block_as_far_as(&self, width: Width, block: usize, site: Site) -> Plan {
        let Self { gpu, config, weights, state, .. } = self;
        let mut recorder = Recorder::new(gpu, &state.step);
        let mut blocks = Blocks::new(&recorder, config, weights, state, width);
        if matches!(site, Site::Qkv | Site::GateUp) {
            blocks = blocks.apart();
        }
        forward::blocks(&mut recorder, &blocks, block..block + 1, site);
        recorder.finish()
    }

    /// The buffer that has the values at `site`.
    fn values(&self, site: Site) -> &Buffer<f32> {
        match site {
            Site::Qkv => &self.state.qkv,
            Site::GateUp => &self.state.ff,
            Site::Output | Site::Down => &self.state.x,
        }
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
