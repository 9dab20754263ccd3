//! Tests what the adapter computes before a load uses it, and while the file's header is fetched.
//!
//! Drivers have errors. Some compile an operation wrong, and some say that subgroups are larger than
//! they are. So a load makes the GPU norm and quantise a row, and multiply it by a small matrix. That
//! takes the reductions over lanes and workgroups, and the products of int8, that most kernels share; it is no test of
//! every kernel.
//! If the numbers are wrong, the load does without what the adapter cannot do.

use super::dot::noise;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Readback, Recorder, Step};
use crate::kernels::{Norm, Product, Quantized, Shard, Ternary};
use crate::reference::ops;
use crate::ternary::{Layout, unpack};

/// Columns and rows: several values for each thread of a workgroup, and several workgroups.
const COLUMNS: usize = 1024;
const ROWS: usize = 68;

/// The error that is allowed. Integers are exact, and a few operations with floats come after them.
const RELATIVE: f32 = 1e-5;

/// Abilities that a load may do without.
#[derive(Clone, Copy)]
struct Without {
    packed_dot: bool,
    subgroups: bool,
    note: Option<&'static str>,
}

/// The ways to compute, best first.
const WAYS: [Without; 4] = [
    Without { packed_dot: false, subgroups: false, note: None },
    Without {
        packed_dot: true,
        subgroups: false,
        note: Some(
            "the GPU's products of four int8 values at once are wrong or do not compile, so it multiplies fewer",
        ),
    },
    Without {
        packed_dot: false,
        subgroups: true,
        note: Some(
            "the GPU's subgroup operations are wrong or do not compile, so it does without them",
        ),
    },
    Without {
        packed_dot: true,
        subgroups: true,
        note: Some(
            "the GPU's subgroup operations and its products of four int8 values at once are wrong or do not compile, so it does without both",
        ),
    },
];

impl Without {
    /// Whether `gpu` does all that this leaves out.
    fn is_new(self, gpu: &Gpu) -> bool {
        (!self.packed_dot || gpu.tuning.has_packed_dot())
            && (!self.subgroups || gpu.subgroups.is_some())
    }

    fn change(self, gpu: &mut Gpu) {
        if self.packed_dot {
            gpu.tuning.packed_dot = Some(false);
        }
        if self.subgroups {
            gpu.leave_out_subgroups();
        }
    }
}

/// Makes `gpu` compute in the first way that gives the right numbers. It gets a note unless that is the
/// best way.
///
/// Errors: `no-adapter` if no way does; those of the device.
pub async fn tested(mut gpu: Gpu) -> Result<Gpu> {
    for way in WAYS {
        if !way.is_new(&gpu) {
            continue;
        }
        let mut trial = gpu.share();
        way.change(&mut trial);
        if pass(&trial).await? {
            way.change(&mut gpu);
            gpu.notes.extend(way.note.map(Into::into));
            return Ok(gpu);
        }
    }
    Err(Error::NoAdapter(format!(
        "`{}` computes wrong numbers, or compiles no shader",
        gpu.adapter
    )))
}

/// Whether a norm and a product have the numbers of the reference.
async fn pass(gpu: &Gpu) -> Result<bool> {
    // The largest is 127: then int8 holds the normed values exactly.
    let mut q: Vec<i8> = noise(COLUMNS).iter().map(|word| (word >> 8) as i8).collect();
    q.iter_mut().for_each(|q| *q = (*q).max(-127));
    q[COLUMNS / 2] = 127;
    let words: Vec<u32> = noise(ROWS * COLUMNS / 16)
        .iter()
        // No code is 3.
        .map(|word| word & !(word >> 1 & word & 0x5555_5555))
        .collect();
    let x: Vec<f32> = q.iter().map(|&q| q.into()).collect();
    let eps = 1e-5;
    let mean = x.iter().map(|x| x * x).sum::<f32>() / COLUMNS as f32;
    let codes = unpack(bytemuck::cast_slice(&words), Layout::X86);
    let sums = ops::matvec_ternary(&codes, COLUMNS, &q);
    let expected = sums.into_iter().map(|sum| sum as f32 / (mean + eps).sqrt());

    let norm = Norm { weight: gpu.upload("trial_weight", &[1f32; COLUMNS]), eps };
    let w = Ternary {
        k: COLUMNS,
        rows: ROWS,
        matrices: 1,
        shards: vec![Shard { buffer: gpu.upload("trial_w", &words), rows: 0..ROWS }],
        scale: gpu.upload("trial_w_scale", &[1f32; ROWS]),
    };
    let d_x = gpu.upload("trial_x", &x);
    let quantized =
        Quantized { q: gpu.buffer("trial_q", COLUMNS / 4), scale: gpu.buffer("trial_q_scale", 1) };
    let y = gpu.buffer("trial_y", ROWS);
    let step = Step { n_tokens: 1, ..Step::default() };
    let d_step = gpu.upload("trial_step", &[step]);
    let run = || -> Readback<f32> {
        let mut recorder = Recorder::new(gpu, &d_step);
        recorder.rms_norm_quantize(&d_x, &norm, &quantized);
        recorder.gemv_i2s(&w, &quantized, &y, Product::Store);
        gpu.run_and_read(&[&recorder.finish()], &step, &y, ROWS)
    };
    let found = gpu.try_read(run).await?;
    gpu.free(&norm.weight);
    gpu.free(&w.shards[0].buffer);
    gpu.free(&w.scale);
    gpu.free(&d_x);
    gpu.free(&quantized.q);
    gpu.free(&quantized.scale);
    gpu.free(&y);
    gpu.free(&d_step);
    let is_right =
        |(found, expected): (&f32, f32)| (found - expected).abs() <= RELATIVE * expected.abs();
    Ok(found.is_some_and(|found| found.iter().zip(expected).all(is_right)))
}
