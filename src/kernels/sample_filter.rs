use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;
use crate::sampling::Sampling;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_filter",
    bindings: &[
        ("sampling", Access::Uniform),
        ("logits", Access::Read),
        ("threshold", Access::Write),
    ],
    variants: one_variant!("shared/sampling", "sample_filter"),
    example: || consts(128_256),
};

fn consts(n_vocab: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("N_VOCAB", n_vocab)]
}

/// [`Sampling`] as the sampling kernels read it; `struct Sampling` in `shared/sampling.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct SamplingParams {
    inverse_temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    seed: u32,
    pad: [u32; 3],
}

impl From<&Sampling> for SamplingParams {
    fn from(sampling: &Sampling) -> Self {
        let inverse_temperature =
            if sampling.is_greedy() { 0.0 } else { 1.0 / sampling.temperature };
        Self {
            inverse_temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            seed: sampling.seed,
            pad: [0; 3],
        }
    }
}

impl Recorder<'_> {
    /// `threshold[0]` = the least of `logits` `[n_vocab]` that top-k, top-p and min-p accept.
    pub fn sample_filter(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        threshold: &Buffer<f32>,
    ) {
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[sampling, logits, threshold],
            [Extent::Fixed(1); 3],
        );
    }
}
