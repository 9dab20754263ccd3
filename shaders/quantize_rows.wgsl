// Quantises each token's row to int8, without a norm: q and its scale s. See normed_input.wgsl.
// There is one workgroup per token.

// [n_tokens, K]
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
// [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(1) var<storage, read_write> q: array<vec4u>;
// [n_tokens]: s, sum of q
@group(0) @binding(2) var<storage, read_write> q_scale: array<vec2f>;

const NORM: bool = false;
const EPS: f32 = 0.0;

fn weight(i: u32) -> vec4f {
    return vec4f(1.0);
}
