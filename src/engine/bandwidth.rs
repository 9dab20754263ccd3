//! Measures how fast the GPU reads its memory, so that the kernels' rates can be compared with it.

use std::time::Duration;

use web_time::Instant;

use super::weights::Weights;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Plan, Recorder, Step};
use crate::kernels::probed_sums;

/// Reading is repeated until it takes so long. Then submitting and waiting hardly count, and the
/// clocks have had time to rise.
const LONG_ENOUGH: Duration = Duration::from_millis(60);
const MAX_REPEATS: usize = 4096;

/// The fewest measurements. The best counts, because other programs use the memory too.
const MIN_TIMES: usize = 3;

/// The most measurements. After so many, the best counts even if no other is near it.
const MAX_TIMES: usize = 8;

/// The second best may have taken so many times as long as the best.
const NEAR: f64 = 1.1;

/// Bytes of noise that are written together.
const NOISE: usize = 4 << 20;

/// The GB/s of a kernel that only reads. It reads the embedding, or random numbers if the embedding
/// would fit into caches.
///
/// It measures by the wall clock and repeats often, because browsers make the GPU's own clock
/// coarse, if it has one.
pub(super) async fn bandwidth(recorder: &mut Recorder<'_>, weights: &Weights) -> Result<f64> {
    let gpu = recorder.gpu();
    let enough = gpu.tuning.probe_bytes;
    let stays = |buffer: &&Buffer<u32>| buffer.portion().is_none();
    let embedding = weights.token_embd.buffers().into_iter().filter(stays);
    let embedding: Vec<_> = embedding.map(Buffer::cast).collect();
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

/// Writes noise, because memory with the same value everywhere may be read faster.
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
    let seconds = seconds(async |repeats| read(gpu, &plan, &sums, repeats).await).await;
    gpu.free(&sums);
    Ok(bytes as f64 / seconds? / 1e9)
}

/// The seconds of one repeat. `take` runs a number of repeats, and gives the time of all of them.
async fn seconds(mut take: impl AsyncFnMut(usize) -> Result<Duration>) -> Result<f64> {
    // The first run also waits for the kernel to compile and for the noise to arrive.
    take(1).await?;
    let mut repeats = 1;
    loop {
        let mut times = Vec::new();
        while times.len() < MAX_TIMES && !(times.len() >= MIN_TIMES && agree(&times)) {
            times.push(take(repeats).await?);
            times.sort_unstable();
            // There will be more repeats, whatever further measurements give.
            if times[0] < LONG_ENOUGH && repeats < MAX_REPEATS {
                break;
            }
        }
        // The shortest time must be long enough. A longer one may only be so because it was
        // disturbed.
        if times[0] >= LONG_ENOUGH || repeats >= MAX_REPEATS {
            // A coarse clock may have seen no time at all.
            let best = times[0].max(Duration::from_micros(1));
            return Ok(best.as_secs_f64() / repeats as f64);
        }
        repeats *= 2;
    }
}

/// Whether the best two of the sorted `times` are near each other.
fn agree(times: &[Duration]) -> bool {
    times[1].as_secs_f64() <= NEAR * times[0].as_secs_f64()
}

async fn read(gpu: &Gpu, plan: &Plan, sums: &Buffer<u32>, repeats: usize) -> Result<Duration> {
    let started = Instant::now();
    gpu.run_and_read(&vec![plan; repeats], &Step::default(), sums, 1).take().await?;
    Ok(started.elapsed())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "this is how tests fail")]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// The measured milliseconds of one repeat on a card on which it takes 0.064, and the number of
    /// runs. `disturbed` gives the milliseconds by which a run takes longer, by its number.
    fn measured(disturbed: impl Fn(usize) -> f64) -> (f64, usize) {
        let mut runs = 0;
        let take = async |repeats| {
            let more = disturbed(runs);
            runs += 1;
            // Submitting and waiting take two milliseconds.
            Ok(Duration::from_secs_f64((2.0 + 0.064 * repeats as f64 + more) / 1e3))
        };
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(seconds) = pin!(seconds(take)).poll(&mut context) else {
            panic!("it waits")
        };
        (seconds.unwrap() * 1e3, runs)
    }

    #[test]
    fn the_speed_is_that_of_many_repeats_whatever_disturbs_some_runs() {
        let (undisturbed, runs) = measured(|_| 0.0);
        assert!((0.064..0.067).contains(&undisturbed), "{undisturbed} ms");
        // The first run, eleven up to 1024 repeats, and two more.
        assert_eq!(runs, 1 + 11 + 2);
        for disturbed in 0..runs {
            let (found, _) = measured(|run| if run == disturbed { 100.0 } else { 0.0 });
            assert!((0.064..0.067).contains(&found), "{found} ms with run {disturbed} disturbed");
        }
    }

    #[test]
    fn it_is_measured_again_until_two_runs_agree() {
        // From run 11 on, each run is disturbed half as much as the run before it.
        let slow = |run: usize| if run >= 11 { 200.0 * 0.5_f64.powi(run as i32 - 11) } else { 0.0 };
        let (found, runs) = measured(slow);
        assert!((0.064..0.075).contains(&found), "{found} ms");
        assert!((17..=21).contains(&runs), "{runs} runs");
        // The measurement ends even if no two runs agree.
        let (_, runs) = measured(|run| 1e6 / (run + 1) as f64 / (run + 1) as f64);
        assert_eq!(runs, 1 + MAX_TIMES);
    }
}
