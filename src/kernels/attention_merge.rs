use super::attention::{AttentionShape, Partials};
use super::rows::{norm_consts, norm_threads, weight_or};
use super::splits::{MAX_SPLITS, splits_const};
use super::weight::{Norm, Quantized};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "attention_merge",
    bindings: &[
        ("step", Access::Step),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("norm_weight", Access::Read),
        ("q", Access::Write),
        ("q_scale", Access::Write),
    ],
    variants: lanes_variants!("group";
        "shared/step",
        "shared/quantize",
        "shared/merged",
        "shared/merged_input",
        "shared/normed_input",
        "shared/norm_weight",
        "shared/quantized_rows",
        "attention_merge"
    ),
    example: || consts(&AttentionShape::EXAMPLE, WORKGROUP, Some(1e-5)),
};

fn consts(shape: &AttentionShape, workgroup: u32, eps: Option<f32>) -> Vec<Const> {
    let own = [
        Const::U32("WORKGROUP", workgroup),
        Const::size("K", shape.n_head * shape.head_dim),
        splits_const(MAX_SPLITS),
    ];
    [shape.consts(), own.into(), norm_consts(eps)].concat()
}

impl Recorder<'_> {
    /// `y` = the int8 quantisation of the outputs of all heads. They are merged from `partials`,
    /// and normed if there is a `norm`.
    pub fn attention_merge(&mut self, partials: &Partials, norm: Option<&Norm>, y: &Quantized) {
        let Partials { shape, sums, max_total } = partials;
        let weight = weight_or(norm, sums);
        let threads = norm_threads(self.tuning(), shape.n_head * shape.head_dim);
        self.dispatch(
            &KERNEL,
            &consts(shape, threads, norm.map(|norm| norm.eps)),
            &[sums, max_total, &weight, &y.q, &y.scale],
            [Extent::Tokens(1), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
