use super::rows::norm_threads;
use super::weight::Quantized;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "quantize_rows",
    bindings: &[("x", Access::Read), ("q", Access::Write), ("q_scale", Access::Write)],
    variants: lanes_variants!("group"; "shared/quantize", "shared/normed_input", "shared/row_input", "shared/quantized_rows", "quantize_rows"),
    example: || consts(WORKGROUP, 2560),
};

fn consts(workgroup: u32, k: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", workgroup), Const::size("K", k)]
}

impl Recorder<'_> {
    /// `y` = the int8 quantisation of every token of `x` `[n_tokens, k]`, `k` a multiple of 128.
    pub fn quantize_rows(&mut self, x: &Buffer<f32>, k: usize, y: &Quantized) {
        self.dispatch(
            &KERNEL,
            &consts(norm_threads(self.tuning(), k), k),
            &[x, &y.q, &y.scale],
            [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
