use super::adapter_thin::{self, Batch, Thin};
use super::attention::{AttentionShape, Partials};
use super::rows::weight_or;
use super::splits::{FEW_SPLITS, MAX_SPLITS, splits_const};
use super::weight::Norm;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "adapter_thin_merged",
    bindings: &[
        ("step", Access::Step),
        ("a", Access::Read),
        ("factor", Access::Read),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("norm_weight", Access::Read),
        ("u", Access::Write),
    ],
    variants: lanes_variants!("lanes";
        "shared/step",
        "shared/norm_weight",
        "shared/merged",
        "shared/adapter_rows",
        "adapter_thin_merged"
    ),
    example: || consts(&AttentionShape::EXAMPLE, 16, Some(1e-5), MAX_SPLITS),
};

fn consts(shape: &AttentionShape, rows: usize, eps: Option<f32>, splits: u32) -> Vec<Const> {
    let thin = adapter_thin::consts(shape.n_head * shape.head_dim, rows, eps, Batch::Few);
    [shape.consts(), thin, vec![splits_const(splits)]].concat()
}

impl Recorder<'_> {
    /// As [`Recorder::adapter_thin`] of few tokens, with the outputs of attention, merged from `partials`.
    pub fn adapter_thin_merged(
        &mut self,
        thin: &Thin,
        partials: &Partials,
        norm: Option<&Norm>,
        u: &Buffer<f32>,
    ) {
        let Partials { shape, sums, max_total } = partials;
        let weight = weight_or(norm, sums);
        let eps = norm.map(|norm| norm.eps);
        let consts = |splits| consts(shape, thin.rows(), eps, splits);
        let groups = thin.workgroups(Batch::Few);
        self.dispatch(
            &KERNEL,
            &consts(MAX_SPLITS),
            &[&thin.a, &thin.factor, sums, max_total, &weight, u],
            groups,
        );
        for (splits, is_taken) in FEW_SPLITS {
            self.instead(is_taken, &KERNEL, &consts(splits), groups);
        }
    }
}
