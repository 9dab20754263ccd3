//! Weights that do not stay on the GPU. They are cut into portions, which are in main memory as the GPU holds
//! them. A few bays on the GPU take the portions in turn.

use std::ops::Range;
use std::sync::Arc;

use super::kept::Kept;
use super::mapped::{Mapped, Waiting};
use super::staging::wait_for;
use super::{Buffer, Link};
use crate::error::Result;

/// Weights that have to be on the GPU before a kernel reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// A portion with a bay.
    InBay(usize),
    /// The rows of the embedding for the tokens of a step.
    Rows,
    /// A portion that is never on the GPU. No kernel reads it.
    Kept(usize),
}

/// All portions of a model.
#[derive(Default)]
pub(super) struct Portions {
    all: Vec<Held>,
    /// The portion in each bay, after all work that was given.
    bays: Vec<(wgpu::Buffer, Option<usize>)>,
    embedding: Option<Embedding>,
    ready: bool,
}

struct Held {
    bay: Option<usize>,
    bytes: Kept,
}

/// An embedding that is not on the GPU: where its rows are, and the buffers from which a step reads some of them.
struct Embedding {
    tokens: Buffer<u32>,
    /// The row that a step reads for the token of each index.
    rows: Vec<u32>,
    planes: Vec<Plane>,
}

/// Values that each row of a matrix has, such as its codes or its scales.
pub struct Plane {
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Where a step reads rows.
    pub to: Buffer<u32>,
    /// Rows of the whole matrix, in portions.
    pub from: Vec<(Range<usize>, Buffer<u32>)>,
}

/// The ids of a step's tokens, on their way from the GPU.
pub(super) struct Rows {
    staging: wgpu::Buffer,
    mapped: Mapped,
    submission: wgpu::SubmissionIndex,
}

impl Portions {
    /// Forgets all portions and bays.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds bays, and portions: the bay of each, if it has one, and its bytes.
    pub(super) fn add(
        &mut self,
        bays: Vec<wgpu::Buffer>,
        portions: impl Iterator<Item = (Option<usize>, Kept)>,
    ) {
        self.bays.extend(bays.into_iter().map(|bay| (bay, None)));
        self.all.extend(portions.map(|(bay, bytes)| Held { bay, bytes }));
    }

    /// Changes bytes of a portion, from byte `at` on. It must not be on the GPU.
    ///
    /// Errors: why not, in words.
    pub(super) fn write(&mut self, portion: usize, at: u64, bytes: &[u8]) -> Result<(), String> {
        self.all[portion].bytes.write(at, bytes)
    }

    pub(super) fn are_ready(&self) -> bool {
        self.ready
    }

    /// Gives a portion its bay, and whether it has to be uploaded for that.
    pub(super) fn takes_bay(&mut self, portion: usize) -> bool {
        let Some(bay) = self.all[portion].bay.filter(|_| self.ready) else { return false };
        self.bays[bay].1.replace(portion) != Some(portion)
    }

    /// The bay of a portion, and its bytes.
    pub(super) fn in_bay(&self, portion: usize) -> Option<(&wgpu::Buffer, &Kept)> {
        let Held { bay, bytes } = &self.all[portion];
        Some((&self.bays[(*bay)?].0, bytes))
    }

    /// Begins to read the ids of all tokens.
    pub(super) fn read_tokens(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        waiting: &Arc<Waiting>,
    ) -> Option<Rows> {
        let tokens = &self.embedding.as_ref()?.tokens;
        let size = tokens.bytes();
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("tokens"),
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&tokens.raw, tokens.offset, &staging, 0, size);
        let submission = queue.submit([encoder.finish()]);
        let mapped = Mapped::begin(&staging, wgpu::MapMode::Read, waiting);
        Some(Rows { staging, mapped, submission })
    }

    /// Writes the rows of the tokens at `indices`, whose ids `ids` has.
    pub(super) fn write_rows(
        &self,
        queue: &wgpu::Queue,
        ids: Rows,
        indices: &[u32],
    ) -> Result<(), String> {
        let view = ids.staging.get_mapped_range(..).map_err(|error| error.to_string())?;
        let all: Vec<u32> = view.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
        drop(view);
        ids.staging.destroy();
        let Some(Embedding { rows, planes, .. }) = &self.embedding else { return Ok(()) };
        let rows: Vec<(usize, usize)> = indices
            .iter()
            .map(|&index| (rows[index as usize] as usize, all[index as usize] as usize))
            .collect();
        for Plane { row_bytes, to, from } in planes {
            // Rows that follow each other are one write, because in a browser each write is a call.
            for run in rows.chunk_by(|a, b| a.0 + 1 == b.0) {
                let mut bytes = vec![0; run.len() * row_bytes];
                for (&(_, id), row) in run.iter().zip(bytes.chunks_exact_mut(*row_bytes)) {
                    self.read_row(from, id, row)?;
                }
                queue.write_buffer(&to.raw, to.offset + (run[0].0 * row_bytes) as u64, &bytes);
            }
        }
        Ok(())
    }

    /// Reads row `id` of a matrix. A token that was not chosen, for want of numbers, has none.
    fn read_row(
        &self,
        from: &[(Range<usize>, Buffer<u32>)],
        id: usize,
        row: &mut [u8],
    ) -> Result<(), String> {
        let found = from.iter().find(|part| part.0.contains(&id));
        match found.map(|(rows, buffer)| (rows, buffer, buffer.portion())) {
            Some((rows, buffer, Some(Portion::InBay(portion) | Portion::Kept(portion)))) => {
                let at = buffer.offset + ((id - rows.start) * row.len()) as u64;
                self.all[portion].bytes.read(at, row)
            }
            _ => Ok(()),
        }
    }
}

impl Link {
    /// Makes kernels read rows of an embedding that is not on the GPU. `rows` says for each index in `tokens` which
    /// row of the planes' `to` is that of the token there.
    pub fn fetch_rows(&self, tokens: &Buffer<u32>, rows: Vec<u32>, planes: Vec<Plane>) {
        let tokens = tokens.clone();
        self.ordered.portions(|all| all.embedding = Some(Embedding { tokens, rows, planes }));
    }

    /// From now on, portions are uploaded before kernels read them. During the load, kernels read zeros instead.
    pub fn use_portions(&self) {
        self.ordered.portions(|all| all.ready = true);
    }
}

impl Rows {
    /// Whether the ids are here. If it `waits`, a native call waits for them.
    pub(super) fn have_come(&self, device: &wgpu::Device, waits: bool) -> bool {
        wait_for(device, &self.mapped, Some(&self.submission), waits);
        self.mapped.has_ended()
    }
}
