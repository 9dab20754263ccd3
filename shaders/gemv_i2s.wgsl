// Y = W Q for TOKENS tokens at a time: ternary rows times int8 vectors. LANES lanes share a row,
// and each word of codes is read once for all of these tokens.
//
// MATRICES = 1: y[token][row] = product, or y[token][row] += product if ADD. MATRICES = 2: the rows
// come in pairs, gate and up, and y[token][row] = activation(gate) * up.

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
const ROWS: u32 = TEAMS / MATRICES; // rows of y in one workgroup

const_assert EACH == 1u;
const_assert TOKENS == 1u || TOKENS == 4u; // the components of a vector

var<workgroup> sums: array<vec4i, TEAMS>;

fn store(token: u32, row: u32, v: f32) {
    let at = token * ALL_ROWS + row;
    if ADD {
        y[at] += v;
    } else {
        y[at] = v;
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let team = lane / LANES; // each team computes one row of one matrix
    let matrix = team / ROWS;
    let row = group.x * ROWS + team % ROWS;
    let token = group.y * TOKENS;
    let n_tokens = min(TOKENS, step.n_tokens - token);
    var sum = vec4i(); // one sum for each token; those past n_tokens are ignored
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
    if MATRICES == 1u {
        if lane % LANES == 0u && row < N_ROWS {
            let at = FIRST_ROW + row;
            for (var i = 0u; i < n_tokens; i++) {
                store(token + i, at, product(d[i], q_scale[token + i], w_scale[at]));
            }
        }
    } else {
        if lane % LANES == 0u {
            sums[team] = d;
        }
        workgroupBarrier();
        if lane < ROWS && group.x * ROWS + lane < N_ROWS {
            let at = FIRST_ROW + group.x * ROWS + lane;
            let gate = sums[lane];
            let up = sums[ROWS + lane];
            for (var i = 0u; i < n_tokens; i++) {
                let t = q_scale[token + i];
                let v = gated(
                    product(gate[i], t, w_scale[at]),
                    product(up[i], t, w_scale[ALL_ROWS + at]),
                );
                store(token + i, at, v);
            }
        }
    }
}
