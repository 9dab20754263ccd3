// Merges the splits of attention: the mean over a token's splits, each weighted with its share of
// the sum of exponentials. See merged.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(1) var<storage, read> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]
@group(0) @binding(2) var<storage, read> partial_max_total: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>; // [n_tokens, K]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < K / 4u {
        y[id.y * (K / 4u) + id.x] = merged(id.y, id.x);
    }
}
