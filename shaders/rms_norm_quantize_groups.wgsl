// Quantises x * weight to int8 with a scale for every 32, see groups.wgsl and quantize_group.wgsl.
// The factor of a token is the division of its norm: 1 / sqrt(mean(x²) + EPS). There is one
// workgroup per token, and each thread takes one group or several.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;             // [n_tokens, K]
@group(0) @binding(2) var<storage, read> norm_weight: array<vec4f>;   // [K]
@group(0) @binding(3) var<storage, read_write> q: array<vec4u>;       // [n_tokens, Q_VECTORS]
// [n_tokens, Q_SCALES]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read_write> q_scale: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> q_factor: array<f32>;  // [n_tokens]

const GROUPS: u32 = K / 32u;
const GROUPS_EACH: u32 = (GROUPS + WORKGROUP - 1u) / WORKGROUP; // groups of each thread

// Adds in the order of eight_sum_f32.
fn sum_of_eight(v: array<f32, 8>) -> f32 {
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3u, @builtin(local_invocation_index) lane: u32) {
    let token = select(step.n_tokens - 1u, workgroup.x, ALL_TOKENS);
    // If only the last token is quantised, its row is the first of q.
    let row = select(0u, token, ALL_TOKENS);
    var squares = 0.0;
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * WORKGROUP + lane;
        if group < GROUPS {
            var h: array<vec4f, 8>;
            var of_four: array<f32, 8>;
            var largest = 0.0;
            for (var i = 0u; i < 8u; i++) {
                let v = x[token * (K / 4u) + group * 8u + i];
                of_four[i] = square_of(v);
                h[i] = v * norm_weight[group * 8u + i];
                largest = max(largest, largest_of(h[i]));
            }
            squares += sum_of_eight(of_four);
            let per = per_scale(largest);
            var words: array<u32, 8>;
            var sum = vec4i();
            for (var i = 0u; i < 8u; i++) {
                let v = rounded(h[i], per);
                words[i] = packed_bytes(v);
                sum += v;
            }
            let scale = largest / 127.0;
            let first = row * Q_VECTORS + sixteen_at(2u * group);
            q[first] = vec4u(words[0], words[1], words[2], words[3]);
            q[first + 8u] = vec4u(words[4], words[5], words[6], words[7]);
            q_scale[row * Q_SCALES + group] =
                vec2f(scale, scale * f32(sum.x + sum.y + sum.z + sum.w));
        }
    }
    let all = group_sum_f32(lane, squares);
    if lane == 0u {
        q_factor[row] = inverseSqrt(all / f32(K) + EPS);
    }
}
