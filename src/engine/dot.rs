//! Measures which way to multiply int8 values is faster on an adapter.
//!
//! Most cards multiply four pairs in one operation. On other cards the browser has to emulate that
//! operation, and the other way of ternary.wgsl is faster. Nothing in WebGPU says which card it is.
//! The results are the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use web_time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::gpu::{Gpu, Recorder, Step};
use crate::kernels::{Product, Quantized, Shard, Ternary};

/// Rows and columns of the matrix. A model of two billion parameters has such matrices.
const SIZE: usize = 2560;

/// Products in one run.
const PRODUCTS: usize = 64;

/// A run is repeated until it takes so long. Then submitting hardly counts, and a browser's coarse
/// clock can measure it.
const LONG_ENOUGH: Duration = Duration::from_millis(5);
const MAX_REPEATS: f64 = 64.0;

/// Runs that are timed. The shortest counts.
const RUNS: usize = 3;

/// Products without that operation must be faster by this factor, because the time of a run varies.
const MARGIN: f64 = 1.2;

/// The results, by the adapter's name.
static FOUND: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

/// Sets `gpu.tuning.packed_dot`, unless it is set.
///
/// Errors: those of the device.
pub(super) async fn choose(gpu: &mut Gpu) -> Result<()> {
    let packed = match known(gpu.tuning.packed_dot, &gpu.adapter) {
        Some(packed) => packed,
        None => {
            let times = times(gpu).await?;
            found(&gpu.adapter, times)
        }
    };
    gpu.tuning.packed_dot = Some(packed);
    Ok(())
}

/// The choice that was asked for, or else the one that was measured on the adapter before; `None`
/// if it has to be measured.
fn known(asked: Option<bool>, adapter: &str) -> Option<bool> {
    asked.or_else(|| FOUND.lock().unwrap_or_else(PoisonError::into_inner).get(adapter).copied())
}

/// Whether to use the operation on the adapter. The arguments are the seconds of a run with it and
/// without it.
fn found(adapter: &str, [packed, fewer]: [f64; 2]) -> bool {
    let is_packed = packed <= fewer * MARGIN;
    FOUND.lock().unwrap_or_else(PoisonError::into_inner).insert(adapter.to_owned(), is_packed);
    is_packed
}

/// Bits without a pattern, because a card may be faster with zeros.
pub(super) fn noise(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ (i >> 3)).collect()
}

/// Seconds that a run takes with the operation and without it.
async fn times(gpu: &mut Gpu) -> Result<[f64; 2]> {
    let codes: Vec<u32> = noise(SIZE * SIZE / 16).iter().map(|w| w & 0x5555_5555).collect();
    let w = Ternary {
        k: SIZE,
        rows: SIZE,
        matrices: 1,
        shards: vec![Shard { buffer: gpu.upload("dot_w", &codes), rows: 0..SIZE }],
        scale: gpu.upload("dot_w_scale", &vec![1f32; SIZE]),
    };
    let x = Quantized {
        q: gpu.upload("dot_q", &noise(SIZE / 4)),
        scale: gpu.upload("dot_q_scale", &[[1f32, 0.0]]),
    };
    let y = gpu.buffer("dot_y", SIZE);
    let step = Step { pos: 0, n_tokens: 1, n_splits: 1, split_len: 1, ..Step::default() };
    let d_step = gpu.upload("dot_step", &[step]);
    let asked = gpu.tuning.packed_dot;
    let plans = [true, false].map(|packed| {
        gpu.tuning.packed_dot = Some(packed);
        let mut recorder = Recorder::new(gpu, &d_step);
        for _ in 0..PRODUCTS {
            recorder.gemv_i2s(&w, &x, &y, Product::Store);
        }
        recorder.finish()
    });
    gpu.tuning.packed_dot = asked;
    gpu.compile(&plans).await;
    let mut times = [f64::INFINITY; 2];
    for (plan, shortest) in plans.iter().zip(&mut times) {
        let run = async |repeats: usize| {
            let started = Instant::now();
            let plans = vec![plan; repeats];
            gpu.run_and_read(&plans, &step, &y, 1).take().await?;
            Ok::<f64, Error>(started.elapsed().as_secs_f64())
        };
        // Drivers do more in the first run.
        run(1).await?;
        let one = run(1).await?;
        let repeats = (LONG_ENOUGH.as_secs_f64() / one).clamp(1.0, MAX_REPEATS) as usize;
        for _ in 0..RUNS {
            *shortest = shortest.min(run(repeats).await? / repeats as f64);
        }
    }
    w.shards.iter().for_each(|shard| gpu.free(&shard.buffer));
    gpu.free(&x.q);
    gpu.free(&x.scale);
    gpu.free(&w.scale);
    gpu.free(&y);
    gpu.free(&d_step);
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operation_is_used_unless_it_is_slower_by_the_margin() {
        assert!(found("faster", [0.5, 1.0]));
        assert!(found("a little slower", [1.1, 1.0]));
        assert!(!found("slower", [1.3, 1.0]));
    }

    #[test]
    fn an_adapter_is_measured_once_and_only_if_nothing_was_asked_for() {
        assert_eq!(known(None, "new"), None);
        for asked in [false, true] {
            assert_eq!(known(Some(asked), "new"), Some(asked));
        }
        assert!(!found("slow", [2.0, 1.0]));
        assert!(found("fast", [1.0, 2.0]));
        assert_eq!([known(None, "slow"), known(None, "fast")], [Some(false), Some(true)]);
        assert_eq!(known(Some(true), "slow"), Some(true));
        assert_eq!(known(None, "new"), None);
    }
}
