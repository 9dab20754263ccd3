// q, s = int8 quantisation of h = x / sqrt(mean(x²) + EPS) * weight. One workgroup per token.
//
// One pass finds both mean(x²) and max|x * weight|; h is never stored.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;           // [n_tokens, N]
@group(0) @binding(1) var<storage, read> weight: array<vec4f>;      // [N]
@group(0) @binding(2) var<storage, read_write> q: array<u32>;       // [n_tokens, N] int8, see quantize.wgsl
@group(0) @binding(3) var<storage, read_write> q_scale: array<vec2f>; // [n_tokens]: s, sum of q

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * (N / 4u);
    var squares = 0.0;
    var largest = 0.0;
    for (var i = lane; i < N / 4u; i += WORKGROUP) {
        let v = x[row + i];
        squares += dot(v, v);
        let a = abs(v * weight[i]);
        largest = max(largest, max(max(a.x, a.y), max(a.z, a.w)));
    }
    let scale = inverseSqrt(lanes_sum_f32(lane, squares) / f32(N) + EPS);
    let s = 127.0 / max(1e-5, lanes_max_f32(lane, largest) * scale);
    var sum = 0;
    for (var i = lane; i < N / 4u; i += WORKGROUP) {
        let word = quantize(x[row + i] * scale * weight[i], s);
        q[row + quantized_word(i)] = word;
        sum += sum_of_word(word);
    }
    let total = lanes_sum_i32(lane, sum);
    if lane == 0u {
        q_scale[group.x] = vec2f(s, f32(total));
    }
}
