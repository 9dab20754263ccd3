use super::packed::QuantizedGroups;
use super::weight::Norm;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm_quantize_groups",
    bindings: &[
        ("step", Access::Step),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
        ("q_factor", Access::Write),
    ],
    variants: lanes_variants!("group";
        "shared/step",
        "shared/groups", "shared/quantize_group",
        "rms_norm_quantize_groups"
    ),
    example: || consts(2048, 1e-6, true),
};

fn consts(k: usize, eps: f32, all_tokens: bool) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("K", k),
        Const::F32("EPS", eps),
        Const::Bool("ALL_TOKENS", all_tokens),
    ]
}

impl Recorder<'_> {
    /// `y` `[n_tokens, k]` = the int8 quantisation of the norm of every token of `x`, with a scale
    /// for every 32 values.
    pub fn rms_norm_quantize_groups(&mut self, x: &Buffer<f32>, norm: &Norm, y: &QuantizedGroups) {
        self.norm_groups(Extent::Tokens(1), x, norm, y);
    }

    /// `y` `[k]` = the same for the last token of `x` alone.
    pub fn rms_norm_quantize_groups_of_last(
        &mut self,
        x: &Buffer<f32>,
        norm: &Norm,
        y: &QuantizedGroups,
    ) {
        self.norm_groups(Extent::Fixed(1), x, norm, y);
    }

    fn norm_groups(&mut self, tokens: Extent, x: &Buffer<f32>, norm: &Norm, y: &QuantizedGroups) {
        let all_tokens = tokens != Extent::Fixed(1);
        self.dispatch(
            &KERNEL,
            &consts(norm.weight.len(), norm.eps, all_tokens),
            &[x, &norm.weight, &y.q, &y.scale, &y.factor],
            [tokens, Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
