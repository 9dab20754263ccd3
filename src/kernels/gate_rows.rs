use super::weight::Product;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::model::Activation;
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gate_rows",
    bindings: &[("step", Access::Step), ("gate_up", Access::Read), ("y", Access::Write)],
    variants: one_variant!("shared/step", "shared/gated", "gate_rows"),
    example: || consts(3072, Activation::Silu),
};

fn consts(n: usize, activation: Activation) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("N", n)];
    [own, Product::Gated(activation).consts()].concat()
}

impl Recorder<'_> {
    /// `y` `[n_tokens, n]` = the gated activation of `gate_up` `[n_tokens, 2 n]`: the values of gate and then
    /// those of up.
    pub fn gate_rows(
        &mut self,
        activation: Activation,
        n: usize,
        gate_up: &Buffer<f32>,
        y: &Buffer<f32>,
    ) {
        let groups = n.div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(n, activation),
            &[gate_up, y],
            [Extent::Fixed(groups as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
