//! Opens the reference for a session.

use std::future::ready;

use super::Layers;
use crate::compute::{
    About, Backend, Compute, EngineOptions, KvType, Opening, Progress, Site, Tap,
};
use crate::error::Result;
use crate::host::{Host, HostTraits, Model, Row};
use crate::model::{Adapters, Config, Weight};
use crate::source::{Reader, Source};
use crate::ternary::Layout;

/// Opens the reference for a session. It holds keys and values as f32, whatever the options say.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnReference {
    /// How a session is to use it. Larger chunks would only make a page wait longer.
    pub traits: HostTraits,
}

impl Opening for OnReference {
    type Opened = Self;

    fn open(self) -> impl Future<Output = Result<Self>> {
        ready(Ok(self))
    }

    async fn load<S: Source>(
        opened: Self,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        let n_ctx = options.context_within(config.n_ctx)?.unwrap_or(config.n_ctx);
        let layout = if options.i2s_arm { Layout::Arm } else { Layout::X86 };
        let layers = Layers::load(reader, config, table, layout, n_ctx, progress).await?;
        progress(Progress::Compile);
        Ok(Box::new(Host::new(layers, n_ctx, opened.traits)))
    }
}

impl Layers {
    fn row(&self) -> usize {
        self.config.n_embd_kv()
    }

    fn each_to(&mut self, tap: Tap, rows: &[Row]) -> Vec<Vec<f32>> {
        let step = |row: &Row| self.step_to(tap, row.id as usize, row.first, row.pos);
        rows.iter().map(step).collect()
    }
}

impl Model for Layers {
    fn config(&self) -> &Config {
        &self.config
    }

    fn about(&self) -> About {
        About {
            backend: Backend::Cpu,
            adapter: "the reference".into(),
            threads: Some(1),
            kv: KvType::F32,
            sample: self.sample,
            ..About::default()
        }
    }

    fn values(&mut self, rows: &[Row], block: usize, site: Site) -> Vec<Vec<f32>> {
        self.each_to(Tap::Product(block, site), rows)
    }

    fn queries(&mut self, rows: &[Row], block: usize) -> Vec<Vec<f32>> {
        self.each_to(Tap::Queries(block), rows)
    }

    fn hidden(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>> {
        streams.iter().map(|x| Self::hidden(self, x)).collect()
    }

    fn logits(&mut self, streams: &[Vec<f32>]) -> Vec<Vec<f32>> {
        streams.iter().map(|x| Self::logits(self, x)).collect()
    }

    fn set_adapters(&mut self, adapters: &Adapters) -> Result<()> {
        self.adapters = adapters.clone();
        Ok(())
    }

    fn position_bytes(&self) -> usize {
        self.row() * size_of::<f32>()
    }

    fn grow(&mut self, _positions: usize) -> bool {
        // The memory of the cache grows with the positions in use.
        true
    }

    fn copy(&mut self, from: usize, to: usize, n: usize) {
        let row = self.row();
        for values in self.cache_buffers() {
            values.resize(values.len().max((from.max(to) + n) * row), 0.0);
            values.copy_within(from * row..(from + n) * row, to * row);
        }
    }

    fn read(&mut self, buffer: usize, first: usize, n: usize) -> Option<Vec<u32>> {
        let range = first * self.row()..(first + n) * self.row();
        let values = self.cache_buffers().nth(buffer)?.get(range)?;
        Some(values.iter().map(|value| value.to_bits()).collect())
    }

    fn write(&mut self, buffer: usize, first: usize, bytes: &[u8]) {
        let at = first * self.row();
        let (words, _) = bytes.as_chunks();
        if let Some(values) = self.cache_buffers().nth(buffer) {
            values.resize(values.len().max(at + words.len()), 0.0);
            for (value, word) in values[at..].iter_mut().zip(words) {
                *value = f32::from_le_bytes(*word);
            }
        }
    }
}
