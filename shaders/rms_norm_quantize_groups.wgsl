// Quantises x / sqrt(mean(x²) + EPS) * weight to int8 with a scale for each 32: see
// normed_groups.wgsl. One workgroup per token.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;             // [n_tokens, K]
@group(0) @binding(2) var<storage, read> norm_weight: array<vec4f>;   // [K]
@group(0) @binding(3) var<storage, read_write> q: array<vec4u>;       // [n_tokens, K / 16]
// [n_tokens, K / 32]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read_write> q_scale: array<vec2f>;

fn put(token: u32, group: u32, first: vec4u, second: vec4u, s: vec2f) {
    // Only the last token's if it is alone in q.
    let row = select(0u, token, ALL_TOKENS);
    let at = row * GROUPS + group;
    q[2u * at] = first;
    q[2u * at + 1u] = second;
    q_scale[at] = s;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    norm_groups(select(step.n_tokens - 1u, group.x, ALL_TOKENS), lane);
}
