// u[t][row] = factor[row] * a[row] · x[t], for every token t. Each workgroup computes one row for one token.

@group(0) @binding(0) var<storage, read> a: array<vec2u>;      // [ROWS, K] f16
@group(0) @binding(1) var<storage, read> factor: array<f32>;   // [ROWS]
@group(0) @binding(2) var<storage, read> x: array<vec4f>;      // [n_tokens, K]
@group(0) @binding(3) var<storage, read_write> u: array<f32>;  // [n_tokens, ROWS]

const FOURS: u32 = K / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let token = group.y;
    var sum = 0.0;
    for (var n = 0u; n < (FOURS + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        if i < FOURS {
            let words = a[row * FOURS + i];
            let values = vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
            sum += dot(values, x[token * FOURS + i]);
        }
    }
    let total = group_sum_f32(lane, sum);
    if lane == 0u {
        u[token * ROWS + row] = total * factor[row];
    }
}
