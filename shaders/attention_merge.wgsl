// Merges the splits of attention, norms the result if NORM, and quantises it to int8: q and its
// scale s. See merged_input.wgsl and normed_input.wgsl. There is one workgroup per token.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(1) var<storage, read> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]
@group(0) @binding(2) var<storage, read> partial_max_total: array<vec2f>;
// [K]
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4f>;
// [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(4) var<storage, read_write> q: array<vec4u>;
// [n_tokens]: s, sum of q
@group(0) @binding(5) var<storage, read_write> q_scale: array<vec2f>;
