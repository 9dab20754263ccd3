use super::attention::{AttentionShape, Partials};
use super::packed::QuantizedGroups;
use super::splits::{MAX_SPLITS, splits_const};
use crate::gpu::{Access, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Threads in a workgroup. They are few, because there is work for hardly more.
const WORKGROUP: u32 = 64;

pub(super) const KERNEL: Kernel = Kernel {
    name: "merge_quantize",
    bindings: &[
        ("step", Access::Step),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
        ("q_factor", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/merged",
        "shared/groups",
        "shared/quantize_group",
        "merge_quantize"
    ),
    example: || consts(&AttentionShape::EXAMPLE),
};

fn consts(shape: &AttentionShape) -> Vec<Const> {
    let own = [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("K", shape.n_head * shape.head_dim),
        splits_const(MAX_SPLITS),
    ];
    [shape.consts(), own.into()].concat()
}

impl Recorder<'_> {
    /// `y` `[n_tokens, n_head * head_dim]` = the int8 quantisation of the outputs of all heads,
    /// with a scale for every 32 values. The outputs are merged from `partials`.
    pub fn merge_quantize(&mut self, partials: &Partials, y: &QuantizedGroups) {
        let Partials { shape, sums, max_total } = partials;
        let groups = (shape.n_head * shape.head_dim / 4).div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(shape),
            &[sums, max_total, &y.q, &y.scale, &y.factor],
            [Extent::Fixed(groups as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
