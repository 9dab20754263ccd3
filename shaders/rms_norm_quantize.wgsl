// q, s = int8 quantisation of h = x / sqrt(mean(x²) + EPS) * weight. One workgroup per token.
//
// One pass finds both mean(x²) and max|x * weight|; h is never stored.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;           // [n_tokens, N]
@group(0) @binding(1) var<storage, read> weight: array<vec4f>;      // [N]
@group(0) @binding(2) var<storage, read_write> q: array<u32>;       // [n_tokens, N] int8, see quantize.wgsl
@group(0) @binding(3) var<storage, read_write> q_scale: array<vec2f>; // [n_tokens]: s, sum of q

const WORDS: u32 = N / 4u;

// Takes word `i` of the row into the sum of squares and the largest |x * weight|.
fn seen(so_far: vec2f, v: vec4f, weight: vec4f, i: u32) -> vec2f {
    let a = abs(v * weight);
    let more = vec2f(so_far.x + dot(v, v), max(so_far.y, max(max(a.x, a.y), max(a.z, a.w))));
    return select(so_far, more, i < WORDS);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * WORDS;
    let last = WORDS - 1u;
    var squares_largest = vec2f();
    // Four words' loads at once, see gemv_i2s.wgsl.
    for (var i = lane; i < WORDS; i += 4u * WORKGROUP) {
        let at = min(i + vec4u(0u, WORKGROUP, 2u * WORKGROUP, 3u * WORKGROUP), vec4u(last));
        let v0 = x[row + at.x];
        let v1 = x[row + at.y];
        let v2 = x[row + at.z];
        let v3 = x[row + at.w];
        let w0 = weight[at.x];
        let w1 = weight[at.y];
        let w2 = weight[at.z];
        let w3 = weight[at.w];
        squares_largest = seen(squares_largest, v0, w0, i);
        squares_largest = seen(squares_largest, v1, w1, i + WORKGROUP);
        squares_largest = seen(squares_largest, v2, w2, i + 2u * WORKGROUP);
        squares_largest = seen(squares_largest, v3, w3, i + 3u * WORKGROUP);
    }
    let all = lanes_sum_max(lane, squares_largest);
    let scale = inverseSqrt(all.x / f32(N) + EPS);
    let s = 127.0 / max(1e-5, all.y * scale);
    var sum = 0;
    for (var i = lane; i < WORDS; i += WORKGROUP) {
        let word = quantize(x[row + i] * scale * weight[i], s);
        q[row + quantized_word(i)] = word;
        sum += sum_of_word(word);
    }
    let total = lanes_sum_i32(lane, sum);
    if lane == 0u {
        q_scale[group.x] = vec2f(s, f32(total));
    }
}
