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

fn input(token: u32, i: u32) -> Input {
    let at = token * (K / 4u) + i;
    return Input(x[at], x[at + 8u], x[at + 16u], x[at + 24u]);
}

fn put(token: u32, word: u32, values: vec4u) {
    q[token * WORDS + word] = values;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let s_sum = norm_input(group.x, lane);
    if lane == 0u {
        q_scale[group.x] = s_sum;
    }
}
