//! One file for each kernel: its descriptor, and the method of [`Recorder`](crate::gpu::Recorder)
//! that records it. [`crate::reference::ops`] has the same computations in plain Rust, with which
//! the tests compare the kernels.
//!
//! If Rust and WGSL must agree on a number, it is a constant of the descriptor, which the recorder
//! writes into the shader's text. A shader that is written for one value asserts it.
//!
//! The products of one token are rows of the table in `products.rs`. Their shaders are put together
//! from the parts in `shaders/products/`.
//!
//! To add another kernel: write `shaders/NAME.wgsl`, `src/kernels/NAME.rs` and `tests/kernels/cases/NAME.rs`,
//! and name it twice below. `tests/kernels` then checks that they fit together, and the browser
//! test compiles it.

use crate::gpu::Kernel;

// These are outside of the macro, because rustfmt looks for no modules inside one.
mod adapter_add;
mod adapter_thin;
mod adapter_thin_merged;
mod attention;
mod attention_decode;
mod attention_merge;
mod attention_prefill;
mod best_of_each;
mod embed;
mod embed_packed;
mod embed_stream;
mod gate_rows;
mod gemm_few;
mod gemm_i2s;
mod gemm_i2s_matrix;
mod gemm_lm_head;
mod gemm_packed;
mod gemv_i2s;
mod gemv_lm_head;
mod gemv_lm_head_split;
mod gemv_packed;
mod gemv_packed_floats;
mod gemv_upper;
mod logprob_blocks;
mod logprob_record;
mod logprobs;
mod merge_quantize;
mod merge_splits;
mod norm_attention_decode;
mod norm_rope_kv;
mod packed;
mod packed_products;
mod penalize;
mod penalize_upper;
mod probe_read;
mod product_consts;
mod products;
mod quantize_groups;
mod quantize_rows;
mod rescore;
mod rescore_kept;
mod rescore_rest;
mod rms_norm;
mod rms_norm_quantize;
mod rms_norm_quantize_groups;
mod rope_kv;
mod rows;
mod sample_best;
mod sample_bins;
mod sample_check;
mod sample_commit;
mod sample_decide;
mod sample_max;
mod sample_sift;
mod selection;
mod split_f16;
mod splits;
mod step_rows;
mod stream_of_last;
mod take_logits;
mod ternary_products;
mod weight;
mod workgroups;

pub use crate::compute::{KvType, NO_TOKEN};
pub use adapter_add::{Added, Wide};
pub use adapter_thin::{Batch, Thin};
pub use attention::{AttentionShape, KvCache, Partials};
pub use attention_decode::{SHORT, SHORT_SPLIT, decoded_positions};
pub use best_of_each::BestOfBlock;
pub use gemv_upper::{Approximation, leads};
pub use logprobs::{Likeliest, N_RECORDS, Record};
pub use packed::{Format, MIN_LANES, Packed, PackedShard, QuantizedGroups, Scales, Stream};
pub use packed_products::Heads;
pub use penalize::{Adjustments, Penalties};
pub use penalize_upper::ADJUSTED_WORDS;
pub use probe_read::{PROBED_TOGETHER, probed_sums};
pub use rescore::{adjusts_little, rescored_blocks};
pub use rescore_kept::{Rescored, pays, pays_mostly};
pub use rows::{long_row_consts, max_normed_columns, max_rope_columns};
pub use selection::{SamplingParams, Selection};
pub use splits::MAX_SPLITS;
pub use weight::{Dense, DenseType, Norm, Product, Quantized, Shard, Ternary};
pub use workgroups::{FEW, VOCAB_BLOCK, vocab_blocks};

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        /// The kernels that have a shader of their name.
        const NAMED: &[&Kernel] = &[$(&$name::KERNEL),*];
    };
}

kernels! {
    adapter_add,
    adapter_thin,
    adapter_thin_merged,
    attention,
    attention_decode,
    attention_merge,
    attention_prefill,
    best_of_each,
    embed,
    embed_packed,
    embed_stream,
    gate_rows,
    gemm_few,
    gemm_i2s,
    gemm_i2s_matrix,
    gemm_lm_head,
    gemm_packed,
    gemv_i2s,
    gemv_lm_head,
    gemv_lm_head_split,
    gemv_packed,
    gemv_packed_floats,
    gemv_upper,
    logprob_blocks,
    logprob_record,
    merge_quantize,
    merge_splits,
    norm_attention_decode,
    norm_rope_kv,
    penalize,
    penalize_upper,
    probe_read,
    quantize_groups,
    quantize_rows,
    rescore,
    rescore_kept,
    rescore_rest,
    rms_norm,
    rms_norm_quantize,
    rms_norm_quantize_groups,
    rope_kv,
    sample_best,
    sample_bins,
    sample_check,
    sample_commit,
    sample_decide,
    sample_max,
    sample_sift,
    split_f16,
    stream_of_last,
    take_logits,
}

/// Every kernel in the crate.
pub const ALL: &[&Kernel] = &{
    let mut all = [NAMED[0]; NAMED.len() + products::TABLE.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < NAMED.len() { NAMED[i] } else { products::TABLE[i - NAMED.len()] };
        i += 1;
    }
    all
};
