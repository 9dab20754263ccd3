// Puts the parts of attention together, then q, s = int8 quantisation of the sub-norm over all
// heads: h = o / sqrt(mean(o²) + EPS) * weight. One workgroup per token.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> part: array<vec4f>;          // [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(2) var<storage, read> part_ml: array<vec2f>;       // [n_tokens, n_splits, N_HEAD]
@group(0) @binding(3) var<storage, read> weight: array<vec4f>;        // [N]
@group(0) @binding(4) var<storage, read_write> q: array<u32>;         // [n_tokens, N] int8, see quantize.wgsl
@group(0) @binding(5) var<storage, read_write> q_scale: array<vec2f>; // [n_tokens]: s, sum of q

const N: u32 = N_HEAD * HEAD_DIM;

// Values 4i .. 4i + 3 of the heads' outputs.
fn merged(token: u32, i: u32) -> vec4f {
    let head = 4u * i / HEAD_DIM;
    let first = token * step.n_splits;
    var largest = -1e30;
    for (var split = 0u; split < step.n_splits; split++) {
        largest = max(largest, part_ml[(first + split) * N_HEAD + head].x);
    }
    var total = 0.0;
    var sum = vec4f();
    for (var split = 0u; split < step.n_splits; split++) {
        let ml = part_ml[(first + split) * N_HEAD + head];
        let share = exp(ml.x - largest);
        total += share * ml.y;
        sum += share * part[(first + split) * (N / 4u) + i];
    }
    return sum / total;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let token = group.x;
    var squares = 0.0;
    var largest = 0.0;
    for (var i = lane; i < N / 4u; i += WORKGROUP) {
        let v = merged(token, i);
        squares += dot(v, v);
        let a = abs(v * weight[i]);
        largest = max(largest, max(max(a.x, a.y), max(a.z, a.w)));
    }
    let scale = inverseSqrt(lanes_sum_f32(lane, squares) / f32(N) + EPS);
    let s = 127.0 / max(1e-5, lanes_max_f32(lane, largest) * scale);
    var sum = 0;
    for (var i = lane; i < N / 4u; i += WORKGROUP) {
        let word = quantize(merged(token, i) * scale * weight[i], s);
        q[token * (N / 4u) + quantized_word(i)] = word;
        sum += sum_of_word(word);
    }
    let total = lanes_sum_i32(lane, sum);
    if lane == 0u {
        q_scale[token] = vec2f(s, f32(total));
    }
}
