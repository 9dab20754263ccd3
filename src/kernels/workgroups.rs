//! Sizes and numbers of workgroups that kernels share.

use crate::gpu::Extent;

/// Threads in a workgroup, unless a kernel has a reason for fewer: the most that every adapter
/// allows.
pub(super) const WORKGROUP: u32 = 256;

/// Tokens that the kernels of a draft pass take at a time: `gemm_few` and `gemm_lm_head`.
pub const FEW: usize = 8;

/// Tokens in a vocabulary block. One workgroup finds the best of a block.
pub const VOCAB_BLOCK: usize = 1024;

/// The blocks of a vocabulary, each with its best token.
pub const fn vocab_blocks(n_vocab: usize) -> usize {
    n_vocab.div_ceil(VOCAB_BLOCK)
}

/// Any number of workgroups, over two dimensions where WebGPU's limit on one is exceeded.
pub(super) fn in_a_row(groups: usize) -> [Extent; 3] {
    const MAX: usize = 65_535;
    [
        Extent::Fixed(groups.min(MAX) as u32),
        Extent::Fixed(groups.div_ceil(MAX) as u32),
        Extent::Fixed(1),
    ]
}
