use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "take_logits",
    bindings: &[("step", Access::Step), ("all", Access::Read), ("logits", Access::Write)],
    variants: one_variant!("shared/step", "take_logits"),
    example: || consts(128_256),
};

fn consts(n_vocab: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("N_VOCAB", n_vocab)]
}

impl Recorder<'_> {
    /// `logits` `[n_vocab]` = the row of `all` `[n_tokens, n_vocab]` that the step names.
    pub fn take_logits(&mut self, all: &Buffer<f32>, logits: &Buffer<f32>) {
        let groups = logits.len().div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(logits.len()),
            &[all, logits],
            [Extent::Fixed(groups as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
