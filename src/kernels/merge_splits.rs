use super::attention::{AttentionShape, Partials};
use super::splits::{MAX_SPLITS, splits_const};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "merge_splits",
    bindings: &[
        ("step", Access::Step),
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("y", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/merged", "merge_splits"),
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
    /// `y` `[n_tokens, n_head * head_dim]` = the outputs of all heads, merged from `partials`.
    pub fn merge_splits(&mut self, partials: &Partials, y: &Buffer<f32>) {
        let Partials { shape, sums, max_total } = partials;
        let groups = (shape.n_head * shape.head_dim / 4).div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(shape),
            &[sums, max_total, y],
            [Extent::Fixed(groups as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}
