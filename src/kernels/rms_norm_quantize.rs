use super::rows::norm_threads;
use super::weight::{Norm, Quantized};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm_quantize",
    bindings: &[
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/quantize", "shared/normed_input", "shared/row_input", "shared/quantized_rows", "rms_norm_quantize"),
    example: || consts(WORKGROUP, 2560, 1e-5),
};

fn consts(workgroup: u32, k: usize, eps: f32) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", workgroup), Const::size("K", k), Const::F32("EPS", eps)]
}

impl Recorder<'_> {
    /// `y` = the int8 quantisation of the norm of every token of `x` `[n_tokens, k]`, `k` a
    /// multiple of 128.
    pub fn rms_norm_quantize(&mut self, x: &Buffer<f32>, norm: &Norm, y: &Quantized) {
        let k = norm.weight.len();
        self.dispatch(
            &KERNEL,
            &consts(norm_threads(self.tuning(), k), k, norm.eps),
            &[x, &norm.weight, &y.q, &y.scale],
            [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
