// Quantises activations to int8 with a scale for every 32: see quantize_group.wgsl and groups.wgsl.
// A thread takes a group.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;             // [n_tokens, K]
@group(0) @binding(1) var<storage, read_write> q: array<u32>;         // [n_tokens, Q_VECTORS * 4]
// [n_tokens, Q_SCALES]: scale, and scale times the sum of q
@group(0) @binding(2) var<storage, read_write> q_scale: array<vec2f>;

// [n_tokens]: always 1
@group(0) @binding(3) var<storage, read_write> q_factor: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let group = id.x;
    if group >= K / 32u {
        return;
    }
    let at = (id.y * K / 32u + group) * 8u;
    var largest = 0.0;
    for (var i = 0u; i < 8u; i++) {
        largest = max(largest, largest_of(x[at + i]));
    }
    let per = per_scale(largest);
    var sum = vec4i();
    for (var i = 0u; i < 8u; i++) {
        let v = rounded(x[at + i], per);
        q[id.y * (Q_VECTORS * 4u) + four_at(group * 8u + i)] = packed_bytes(v);
        sum += v;
    }
    let scale = largest / 127.0;
    q_scale[id.y * Q_SCALES + group] =
        vec2f(scale, scale * f32(sum.x + sum.y + sum.z + sum.w));
    if group == 0u {
        q_factor[id.y] = 1.0;
    }
}
