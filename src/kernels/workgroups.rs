//! Sizes and numbers of workgroups that kernels share.

use crate::gpu::Extent;

/// Threads in a workgroup, unless a kernel has a reason for fewer. Every adapter allows so many.
pub(super) const WORKGROUP: u32 = 256;

/// The tokens that the kernels of a draft pass, `gemm_few` and `gemm_lm_head`, take at a time.
pub const FEW: usize = 8;

/// Tokens in a vocabulary block. One workgroup finds the best of a block.
pub const VOCAB_BLOCK: usize = 1024;

/// The number of vocabulary blocks. Each has a best token.
pub const fn vocab_blocks(n_vocab: usize) -> usize {
    n_vocab.div_ceil(VOCAB_BLOCK)
}

/// Any number of workgroups. If it exceeds WebGPU's limit on one dimension, they are spread over
/// two.
pub(super) fn in_a_row(groups: usize) -> [Extent; 3] {
    const MAX: usize = 65_535;
    [
        Extent::Fixed(groups.min(MAX) as u32),
        Extent::Fixed(groups.div_ceil(MAX) as u32),
        Extent::Fixed(1),
    ]
}
