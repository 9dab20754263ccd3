//! Tests the adapter's matrix units before they are used.
//!
//! Browsers offer them as an experiment. So a load compares small products with those of the
//! ordinary kernel, to the last bit. If anything differs or does not compile, the load uses the
//! ordinary kernel.

use super::dot::noise;
use crate::error::Result;
use crate::gpu::{Gpu, Readback, Recorder, Step};
use crate::kernels::{Product, Quantized, Shard, Ternary};
use crate::model::Activation;

/// Columns, rows and tokens: several blocks, and more than a tile.
const COLUMNS: usize = 256;
const ROWS: usize = 132;
const TOKENS: usize = 130;

const NOTE: &str =
    "the GPU's matrix units compute wrong numbers or do not compile, so prompts do without them";

/// Clears `gpu.matrix_units`, with a remark, unless they compute the right numbers.
///
/// Errors: those of the device.
pub(super) async fn choose(gpu: &mut Gpu) -> Result<()> {
    if gpu.matrix_units {
        gpu.matrix_units =
            pass(gpu, Product::Add).await? && pass(gpu, Product::Gated(Activation::Silu)).await?;
        if !gpu.matrix_units {
            gpu.remarks.push(NOTE.into());
        }
    }
    Ok(())
}

/// Whether the matrix units give the numbers of the ordinary kernel.
async fn pass(gpu: &Gpu, product: Product) -> Result<bool> {
    let matrices = product.matrices();
    let rows = ROWS / matrices;
    let scale: Vec<f32> = (0..ROWS).map(|i| 0.0123 + 0.1 * i as f32).collect();
    let w = Ternary {
        k: COLUMNS,
        rows,
        matrices,
        shards: vec![Shard {
            buffer: gpu.upload("matrix_w", &noise(ROWS * COLUMNS / 16)),
            rows: 0..rows,
        }],
        scale: gpu.upload("matrix_w_scale", &scale),
    };
    let mut q = noise(TOKENS * COLUMNS / 4);
    // Tokens with the largest and the smallest values.
    q[..COLUMNS / 4].fill(0x7f7f_7f7f);
    q[COLUMNS / 4..COLUMNS / 2].fill(0x8080_8080);
    let q_scale: Vec<[f32; 2]> = (0..TOKENS).map(|i| [53.7 / (i as f32 + 0.3), i as f32]).collect();
    let x =
        Quantized { q: gpu.upload("matrix_q", &q), scale: gpu.upload("matrix_q_scale", &q_scale) };
    let before = vec![0.375f32.to_bits(); TOKENS * rows];
    let y = gpu.upload("matrix_y", &before);
    let step = Step { n_tokens: TOKENS as u32, ..Step::default() };
    let d_step = gpu.upload("matrix_step", &[step]);
    let run = |with_matrix_units: bool| -> Readback<u32> {
        gpu.write(&y, 0, &before);
        let mut recorder = Recorder::new(gpu, &d_step);
        let floats = y.cast::<f32>();
        if with_matrix_units {
            recorder.gemm_i2s_matrix(&w, &x, &floats, product);
        } else {
            recorder.gemm_i2s(&w, &x, &floats, product);
        }
        gpu.run_and_read(&[&recorder.finish()], &step, &y, y.len())
    };
    let expected = run(false).take().await?;
    let found = gpu.try_read(|| run(true)).await?;
    w.shards.iter().for_each(|shard| gpu.free(&shard.buffer));
    gpu.free(&w.scale);
    gpu.free(&x.q);
    gpu.free(&x.scale);
    gpu.free(&y);
    gpu.free(&d_step);
    Ok(found.as_ref() == Some(&expected))
}
