// Quantises x / sqrt(mean(x²) + EPS) * weight to int8: q and its scale s. See normed_input.wgsl.
// There is one workgroup per token.

// [n_tokens, K]
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
// [K]
@group(0) @binding(1) var<storage, read> norm_weight: array<vec4f>;
// [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(2) var<storage, read_write> q: array<vec4u>;
// [n_tokens]: s, sum of q
@group(0) @binding(3) var<storage, read_write> q_scale: array<vec2f>;

const NORM: bool = true;

fn weight(i: u32) -> vec4f {
    return norm_weight[i];
}
