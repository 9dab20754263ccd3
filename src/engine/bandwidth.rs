//! How fast the GPU reads its memory, for comparison with the kernels' own rates.

use std::time::Duration;

use web_time::Instant;

use super::weights::Weights;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use crate::kernels::probed_sums;

/// Reading is repeated until it takes so long: submitting and waiting then hardly count, and the
/// clocks have had time to rise.
const LONG_ENOUGH: Duration = Duration::from_millis(60);
const MAX_REPEATS: usize = 4096;

/// Measurements to take. The best counts, because others use the memory too.
const TIMES: usize = 3;

/// Bytes of noise that are written together.
const NOISE: usize = 4 << 20;

/// GB/s of a kernel that only reads: the embedding, or, where that would fit into caches, random
/// numbers that do not.
///
/// It goes by the wall clock and many repeats: browsers make the GPU's own clock coarse, if it has
/// one.
pub(super) async fn bandwidth(recorder: &mut Recorder<'_>, weights: &Weights) -> Result<f64> {
    let gpu = recorder.gpu();
    let enough = gpu.tuning.probe_bytes;
    let embedding: Vec<_> = weights.token_embd.buffers().into_iter().map(Buffer::cast).collect();
    if embedding.iter().map(Buffer::bytes).sum::<u64>() >= enough {
        return measure(recorder, &embedding).await;
    }
    let each = enough.min(gpu.max_binding) / 16;
    let mut own = Vec::new();
    let allocated = gpu.allocating("a probe of the memory's speed", |allocation| {
        let buffers = 0..enough / 16 / each;
        buffers.for_each(|_| own.push(allocation.buffer("probe", each as usize)));
    });
    let measured = match allocated.await {
        Ok(()) => {
            own.iter().for_each(|buffer| fill(gpu, buffer));
            measure(recorder, &own).await
        }
        Err(error) => Err(error),
    };
    own.iter().for_each(|buffer| gpu.free(buffer));
    measured
}

/// Writes noise: memory that holds the same value everywhere may be read faster.
fn fill(gpu: &Gpu, buffer: &Buffer<[u32; 4]>) {
    let mut state = 1_u32;
    let noise: Vec<[u32; 4]> = (0..NOISE / 16)
        .map(|_| {
            [(); 4].map(|()| {
                state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                state ^ state >> 15
            })
        })
        .collect();
    for at in (0..buffer.len()).step_by(noise.len()) {
        gpu.write(buffer, at, &noise[..noise.len().min(buffer.len() - at)]);
        gpu.flush();
    }
}

async fn measure(recorder: &mut Recorder<'_>, buffers: &[Buffer<[u32; 4]>]) -> Result<f64> {
    let gpu = recorder.gpu();
    let longest = buffers.iter().map(Buffer::len).max().unwrap_or_default();
    let sums: Buffer<u32> = gpu.buffer("sums", probed_sums(longest));
    for buffer in buffers {
        recorder.probe_read(buffer, &sums);
    }
    let plan = recorder.finish();
    let bytes: u64 = buffers.iter().map(Buffer::bytes).sum();
    let mut repeats = 1;
    let mut best = read(gpu, &plan, &sums, repeats).await?;
    while best < LONG_ENOUGH && repeats < MAX_REPEATS {
        repeats *= 2;
        best = read(gpu, &plan, &sums, repeats).await?;
    }
    for _ in 1..TIMES {
        best = best.min(read(gpu, &plan, &sums, repeats).await?);
    }
    gpu.free(&sums);
    // A coarse clock may have seen no time at all.
    let seconds = best.max(Duration::from_micros(1)).as_secs_f64();
    Ok(bytes as f64 * repeats as f64 / seconds / 1e9)
}

async fn read(gpu: &Gpu, plan: &Plan, sums: &Buffer<u32>, repeats: usize) -> Result<Duration> {
    let started = Instant::now();
    gpu.run_and_read(&vec![plan; repeats], &Step::default(), sums, 1).take(gpu).await?;
    Ok(started.elapsed())
}
