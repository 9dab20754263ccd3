// Y = W Q for TOKENS tokens at a time: ternary rows times int8 vectors. LANES lanes share a row,
// and each word of codes is read once for all of these tokens. See rows_of_tokens.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
// [MATRICES, N_ROWS, K] codes, K / 16 words a row
@group(0) @binding(1) var<storage, read> w: array<u32>;
// [MATRICES, ALL_ROWS]
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;
// [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(3) var<storage, read> q: array<vec4u>;
// [n_tokens]: s, sum of q
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>;
// [n_tokens, ALL_ROWS]
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WORDS: u32 = K / 16u;
const STEPS: u32 = (WORDS + LANES - 1u) / LANES;
const FACTOR: f32 = 1.0;

alias Sum = vec4i;

fn finished(sum: i32, token: u32, row: u32, matrix: u32) -> f32 {
    return product(sum, q_scale[token], w_scale[matrix * ALL_ROWS + row]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let team = lane / LANES; // each team computes one row of one matrix
    let matrix = team / ROWS;
    let row = group.x * ROWS + team % ROWS;
    let token = group.y * TOKENS;
    var sum = vec4i(); // one sum for each token; those past the last are ignored
    if row < N_ROWS {
        let first = (matrix * N_ROWS + row) * WORDS;
        let first_q = token * WORDS;
        // Drivers unroll a constant number of steps, so that all loads are in flight together. On
        // an NVIDIA H200 a product then takes 7.7 us. A condition in the loop would prevent that,
        // and the product would take 10.1 us.
        for (var at_step = 0u; at_step < STEPS; at_step++) {
            let i = at_step * LANES + lane % LANES;
            // Past the end of the row, codes are zero and add nothing.
            let word = select(0u, w[first + min(i, WORDS - 1u)], i < WORDS);
            sum.x += dot_word(word, q[first_q + min(i, WORDS - 1u)]);
            if TOKENS > 1u {
                sum.y += dot_word(word, q[first_q + WORDS + min(i, WORDS - 1u)]);
                sum.z += dot_word(word, q[first_q + 2u * WORDS + min(i, WORDS - 1u)]);
                sum.w += dot_word(word, q[first_q + 3u * WORDS + min(i, WORDS - 1u)]);
            }
        }
    }
    var d = vec4i();
    if TOKENS > 1u {
        d = lanes_sum_vec4i(lane, sum);
    } else {
        d.x = lanes_sum_i32(lane, sum.x);
    }
    store_rows(lane, group.x * ROWS, token, d);
}
