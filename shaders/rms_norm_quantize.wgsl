// q, s = int8 quantisation of h = x / sqrt(mean(x²) + EPS) * weight. One workgroup per token.
//
// One pass finds both mean(x²) and max|x * weight|; h is never stored.

@group(0) @binding(0) var<storage, read> x: array<vec4f>;           // [n_tokens, N]
@group(0) @binding(1) var<storage, read> weight: array<vec4f>;      // [N]
@group(0) @binding(2) var<storage, read_write> q: array<u32>;       // [n_tokens, N] int8, see quantize.wgsl
@group(0) @binding(3) var<storage, read_write> q_scale: array<vec2f>; // [n_tokens]: s, sum of q

const WORDS: u32 = N / 4u;
const STEPS: u32 = (WORDS + WORKGROUP - 1u) / WORKGROUP;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * WORDS;
    var squares_largest = vec2f();
    // A constant number of steps, which the compiler unrolls: see gemv_i2s.wgsl.
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = min(at_step * WORKGROUP + lane, WORDS - 1u);
        let v = select(vec4f(), x[row + i], at_step * WORKGROUP + lane < WORDS);
        let a = abs(v * weight[i]);
        squares_largest.x += dot(v, v);
        squares_largest.y = max(squares_largest.y, max(max(a.x, a.y), max(a.z, a.w)));
    }
    let all = group_sum_max(lane, squares_largest);
    let scale = inverseSqrt(all.x / f32(N) + EPS);
    let s = 127.0 / max(1e-5, all.y * scale);
    var sum = 0;
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * WORKGROUP + lane;
        if i < WORDS {
            let word = quantize(x[row + i] * scale * weight[i], s);
            q[row + quantized_word(i)] = word;
            sum += sum_of_word(word);
        }
    }
    let total = group_sum_i32(lane, sum);
    if lane == 0u {
        q_scale[group.x] = vec2f(s, f32(total));
    }
}
