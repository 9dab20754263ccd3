// int8 activations with a scale for each 32: q = round(x / scale), scale = max|x| / 127. A thread
// takes a group of 32.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;             // [n_tokens, K]
@group(0) @binding(1) var<storage, read_write> q: array<u32>;         // [n_tokens, K / 4]
// [n_tokens, K / 32]: scale, and scale times the sum of q
@group(0) @binding(2) var<storage, read_write> q_scale: array<vec2f>;

fn largest_of(v: vec4f) -> f32 {
    let a = abs(v);
    return max(max(a.x, a.y), max(a.z, a.w));
}

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
    let scale = largest / 127.0;
    // A group of values so small that the quotient is infinite counts as zeros.
    let per = select(0.0, 127.0 / largest, largest > 1e-30);
    var sum = 0;
    for (var i = 0u; i < 8u; i++) {
        let v = vec4i(clamp(round(x[at + i] * per), vec4f(-127.0), vec4f(127.0)));
        let bytes = v & vec4i(255);
        q[at + i] = u32(bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u));
        sum += v.x + v.y + v.z + v.w;
    }
    q_scale[at / 8u] = vec2f(scale, scale * f32(sum));
}
