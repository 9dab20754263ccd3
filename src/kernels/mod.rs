//! One file per kernel: its descriptor and the function that records it. What each computes is in
//! [`crate::reference::ops`], which the tests hold them against.
//!
//! To add one: write `shaders/NAME.wgsl`, write `src/kernels/NAME.rs`, name it twice below.
//! `tests/kernels` then holds the pair together, and the browser test compiles it.

use crate::gpu::{Extent, Gpu, Kernel};

// Outside the macro, because rustfmt does not look for modules inside one.
mod attention;
mod attention_decode;
mod attention_merge;
mod attention_prefill;
mod best_of_each;
mod embed;
mod gemm_few;
mod gemm_head;
mod gemm_i2s;
mod gemv_head;
mod gemv_head_split;
mod gemv_i2s;
mod gemv_upper;
mod merge_norm_gemv;
mod norm_gemv;
mod norm_gemv_rope_kv;
mod probe_read;
mod rescore;
mod rms_norm;
mod rms_norm_quantize;
mod rope_kv;
mod row_groups;
mod sample_best;
mod sample_commit;
mod sample_filter;
mod split_f16;
mod weight;

pub use attention::{AttentionShape, MAX_HEAD_DIM, Parts};
pub use attention_merge::MAX_SPLITS;
pub use gemv_upper::leads;
pub use probe_read::probed_sums;
pub use rescore::rescored_stretches;
pub use row_groups::{MAX_NORMED_COLUMNS, MAX_ROPE_COLUMNS};
pub use sample_best::stretches;
pub use sample_filter::SamplingParams;
pub use split_f16::MAX_SPLIT_COLUMNS;
pub use weight::{Dense, DenseType, Product, Quantized, Shard, Ternary};

use row_groups::RowGroups;

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        $(pub use $name::$name;)*

        /// Every kernel in the crate.
        pub const ALL: &[&Kernel] = &[$(&$name::KERNEL),*];
    };
}

kernels! {
    attention,
    attention_decode,
    attention_merge,
    attention_prefill,
    best_of_each,
    embed,
    gemm_few,
    gemm_head,
    gemm_i2s,
    gemv_head,
    gemv_head_split,
    gemv_i2s,
    gemv_upper,
    merge_norm_gemv,
    norm_gemv,
    norm_gemv_rope_kv,
    probe_read,
    rescore,
    rms_norm,
    rms_norm_quantize,
    rope_kv,
    sample_best,
    sample_commit,
    sample_filter,
    split_f16,
}

/// Threads in a workgroup, where a kernel has no reason for another number: the most that every
/// adapter allows.
const WORKGROUP: u32 = 256;

/// Threads that norm a row together. A row has no more work than for some of them, of which a CPU pays
/// for each at every barrier.
fn lanes_of_norm(gpu: &Gpu) -> u32 {
    if gpu.software { 32 } else { WORKGROUP }
}

/// Tokens that kernels for few take at once: `gemm_few` and `gemm_head`.
pub const FEW: usize = 8;

/// Any number of workgroups in a row, over two dimensions where WebGPU's limit on one is exceeded.
fn in_a_row(groups: usize) -> [Extent; 3] {
    const MOST: usize = 65_535;
    [
        Extent::Fixed(groups.min(MOST) as u32),
        Extent::Fixed(groups.div_ceil(MOST) as u32),
        Extent::Fixed(1),
    ]
}
