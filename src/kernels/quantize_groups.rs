use super::packed::QuantizedGroups;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "quantize_groups",
    bindings: &[
        ("x", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
        ("q_factor", Access::Write),
    ],
    variants: one_variant!("shared/groups", "shared/quantize_group", "quantize_groups"),
    example: || consts(2048, 64),
};

fn consts(k: usize, workgroup: u32) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", workgroup), Const::size("K", k)]
}

impl Recorder<'_> {
    /// `y` = the int8 quantisation of every token of `x` `[n_tokens, k]`, with a scale for every 32
    /// values. `k` is a multiple of 32.
    pub fn quantize_groups(&mut self, x: &Buffer<f32>, k: usize, y: &QuantizedGroups) {
        // One thread for each group, so no more threads than groups.
        let workgroup = (k / 32).next_power_of_two().min(WORKGROUP as usize);
        let groups = (k / 32).div_ceil(workgroup);
        self.dispatch(
            &KERNEL,
            &consts(k, workgroup as u32),
            &[x, &y.q, &y.scale, &y.factor],
            [Extent::Fixed(groups as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
