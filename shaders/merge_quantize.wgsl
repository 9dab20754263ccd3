// Merges the splits of attention and quantises the result to int8 with a scale for every 32: see
// merged.wgsl, quantize_group.wgsl and groups.wgsl. A thread takes four values, and eight threads
// take a group.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(1) var<storage, read> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]
@group(0) @binding(2) var<storage, read> partial_max_total: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> q: array<u32>;         // [n_tokens, Q_VECTORS * 4]
// [n_tokens, Q_SCALES]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read_write> q_scale: array<vec2f>;
// [n_tokens]: 1
@group(0) @binding(5) var<storage, read_write> q_factor: array<f32>;

var<workgroup> largest: array<f32, WORKGROUP>;
var<workgroup> sums: array<i32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let inside = id.x < K / 4u;
    var v = vec4f();
    if inside {
        v = merged(id.y, id.x);
    }
    largest[lane] = largest_of(v);
    workgroupBarrier();
    let first = lane / 8u * 8u;
    var most = 0.0;
    for (var i = 0u; i < 8u; i++) {
        most = max(most, largest[first + i]);
    }
    let codes = rounded(v, per_scale(most));
    sums[lane] = codes.x + codes.y + codes.z + codes.w;
    workgroupBarrier();
    if inside {
        q[id.y * (Q_VECTORS * 4u) + four_at(id.x)] = packed_bytes(codes);
    }
    if inside && lane % 8u == 0u {
        var sum = 0;
        for (var i = 0u; i < 8u; i++) {
            sum += sums[first + i];
        }
        let scale = most / 127.0;
        q_scale[id.y * Q_SCALES + id.x / 8u] = vec2f(scale, scale * f32(sum));
        if id.x == 0u {
            q_factor[id.y] = 1.0;
        }
    }
}
