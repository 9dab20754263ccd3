use crate::compute::NO_TOKEN;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// One workgroup does all of the work, and there are few blocks.
const WORKGROUP: u32 = 64;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_commit",
    bindings: &[("best", Access::Read), ("tokens", Access::Write), ("sampled", Access::Write)],
    variants: one_variant!("shared/best", "shared/commit", "sample_commit"),
    example: || consts(126, 4),
};

fn consts(n_blocks: usize, n_sampled: usize) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N_BLOCKS", n_blocks),
        Const::size("N_SAMPLED", n_sampled),
        Const::U32("NO_TOKEN", NO_TOKEN),
    ]
}

impl Recorder<'_> {
    /// `tokens[0]` = the best of `best`; [`NO_TOKEN`] if no logit is a number. It is appended to
    /// `sampled`, which loses its first token.
    pub fn sample_commit(
        &mut self,
        best: &Buffer<[u32; 2]>,
        tokens: &Buffer<u32>,
        sampled: &Buffer<u32>,
    ) {
        self.dispatch(
            &KERNEL,
            &consts(best.len(), sampled.len()),
            &[best, tokens, sampled],
            [Extent::Fixed(1); 3],
        );
    }
}
