//! Makes a model fit into the memory of a GPU.

use super::lm_head::{self, Candidates};
use super::residency::Residency;
use super::state::State;
use super::weights::{Shapes, Weights};
use crate::compute::EngineOptions;
use crate::error::{Error, Result};
use crate::gpu::{Goes, Gpu};
use crate::model::{Config, Role, Weight};

/// The fewest bytes of a bay if the LM head is cut into slices. Smaller slices would take more dispatches, and each
/// slice has a kernel of its own.
const SLICE: u64 = 8 << 20;

/// If the device refuses memory, the next attempt takes seven eighths of what it granted. The rest is for others.
const USED: (u64, u64) = (7, 8);

/// The most times that a load asks for memory.
const MAX_TRIES: usize = 4;

/// The facts from which the memory on the GPU follows.
struct Needs<'a> {
    gpu: &'a Gpu,
    config: &'a Config,
    table: &'a [Weight],
    options: &'a EngineOptions,
}

impl Needs<'_> {
    /// Bytes of all buffers.
    fn bytes(&self, residency: &Residency) -> Result<u64> {
        let Self { gpu, config, table, options } = *self;
        let shapes = Shapes { config, table, residency };
        let (weights, of_weights) = gpu.measuring(true, |a| shapes.weights(a));
        let (state, of_state) = State::measure(gpu, config, &weights, options)?;
        let splits =
            lm_head::splits(options.lm_head, weights.lm_head(), gpu)? && residency.is_whole();
        let of_head = match weights.lm_head().dense().filter(|_| splits) {
            Some(w) => Candidates::measure(gpu, w, [&state.logits, &state.adjusted_upper]),
            None => 0,
        };
        Ok(of_weights + of_state + of_head + residency.staged())
    }

    /// Bytes of the largest portion.
    fn bay(&self, slices_lm_head: bool) -> u64 {
        let Self { gpu, config, table, .. } = *self;
        let n_layer = config.n_layer;
        let whole = Residency::whole(n_layer);
        let shapes = Shapes { config, table, residency: &whole };
        let (bytes, _) = gpu.measuring(true, |a| {
            let of_block = |n| a.portion(Goes::Nowhere, |a| drop(shapes.matrices(a, n))).1;
            (0..n_layer).map(of_block).max().unwrap_or(0)
        });
        let slice = if slices_lm_head { SLICE.min(shapes.lm_head_bytes() / 2) } else { 0 };
        bytes.max(slice).next_multiple_of(256)
    }

    /// The most weights that can stay within `most` bytes.
    ///
    /// Errors: `out-of-memory`, `bad-option` (context, kv).
    fn within(&self, most: u64) -> Result<Residency> {
        let n_layer = self.config.n_layer;
        let whole = Residency::whole(n_layer);
        if self.bytes(&whole)? <= most {
            return Ok(whole);
        }
        let is_tied = !self.table.iter().any(|weight| weight.role == Role::Output);
        let mut least = u64::MAX;
        // The rows of an embedding cost nothing to fetch, next to layers. The LM head comes in slices only if no block
        // could stay otherwise: kept, a prompt does not read it for each chunk.
        for (embedding, lm_head) in [(is_tied, true), (false, false)] {
            let bay = self.bay(!lm_head);
            let staying = |n| {
                let mut part = Residency::of_blocks(n_layer, n);
                (part.lm_head, part.embedding, part.bay) = (lm_head, embedding, bay);
                part
            };
            let fits = |n| Ok::<bool, Error>(self.bytes(&staying(n))? <= most);
            // This one needs no bays, so it may fit where fewer blocks do not.
            if fits(n_layer)? {
                return Ok(staying(n_layer));
            }
            let needed = self.bytes(&staying(0))?;
            least = least.min(needed);
            if needed > most {
                continue;
            }
            let (mut fit, mut too_many) = (0, n_layer);
            while too_many - fit > 1 {
                let n = fit.midpoint(too_many);
                if fits(n)? { fit = n } else { too_many = n }
            }
            return Ok(staying(fit));
        }
        let what = "the KV cache, the activations and two layers of the weights".into();
        Err(Error::OutOfMemory { what, needed: least, granted: most })
    }
}

/// Allocates the weights that stay on the GPU, the bays of the others, and the state. It takes no more than the
/// caller allows, and less where the device refuses it.
///
/// Errors: `out-of-memory`, `bad-option` (context, kv, lmHead).
pub(super) async fn allocate(
    gpu: &Gpu,
    config: &Config,
    table: &[Weight],
    options: &EngineOptions,
) -> Result<(Residency, Weights, State)> {
    let needs = Needs { gpu, config, table, options };
    let mut residency = match gpu.max_bytes {
        Some(most) => needs.within(most)?,
        None => Residency::whole(config.n_layer),
    };
    gpu.watch_made();
    let mut refusal = None;
    let mut tries_left = MAX_TRIES;
    loop {
        let error = match buffers(&needs, &residency).await {
            Ok((weights, state)) => {
                gpu.keep_made();
                return Ok((residency, weights, state));
            }
            Err(error) => error,
        };
        gpu.free_made();
        // Without an error of the device, it has refused memory. With one, a binding would be too large.
        let Error::OutOfMemory { granted, .. } = error else { return Err(error) };
        gpu.check()?;
        // This was main memory.
        if granted == 0 {
            return Err(error);
        }
        let refused = refusal.get_or_insert(error);
        tries_left -= 1;
        match needs.within(granted / USED.1 * USED.0) {
            Ok(less) if less != residency && tries_left > 0 => residency = less,
            _ => return Err(refused.clone()),
        }
    }
}

async fn buffers(needs: &Needs<'_>, residency: &Residency) -> Result<(Weights, State)> {
    let Needs { gpu, config, table, options } = needs;
    let shapes = Shapes { config, table, residency };
    let weights = gpu.packing("the weights", |allocation| shapes.weights(allocation)).await?;
    let state = State::allocate(gpu, config, &weights, options).await?;
    Ok((weights, state))
}
