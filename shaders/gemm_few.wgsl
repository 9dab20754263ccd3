// Y = W Q for a few tokens, FEW at a time: ternary rows times int8 vectors. LANES lanes share EACH
// rows. They read the tokens once for all of these rows, and unpack the codes once for all tokens.
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
const ROWS: u32 = EACH / MATRICES; // rows of y in a team of LANES lanes

const_assert FEW == 8u;      // sum0 to sum7
const_assert EACH == 4u;     // EACH rows are the components of a vector
const_assert LANES >= FEW;   // FEW of the lanes store one token each

// Keeps compilers from fusing a product with the sum that it is added to. Fused, it is rounded once less
// than in the kernels of one token, which must give the same bits. The highest bit of n_tokens is 0, but
// no compiler knows that.
fn unfused(product: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(product) | (step.n_tokens >> 31u));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = (group.x * TEAMS + lane / LANES) * ROWS;
    let first_token = group.y * FEW;
    // Rows past the last use the last row's codes. They are not stored.
    let each = vec4u(0u, 1u, 2u, 3u);
    let rows =
        (each % MATRICES * N_ROWS + min(first + each / MATRICES, vec4u(N_ROWS - 1u))) * WORDS;
    // One lane stores one token. It loads the scales together with the codes. If it loaded them at
    // the end, it would have to wait for them.
    let token = first_token + lane % LANES;
    let is_mine = lane % LANES < FEW && token < step.n_tokens;
    var t = vec2f();
    if is_mine {
        t = q_scale[token];
    }
    let at_rows = FIRST_ROW + min(first + each, vec4u(N_ROWS - 1u));
    let scales =
        vec4f(w_scale[at_rows.x], w_scale[at_rows.y], w_scale[at_rows.z], w_scale[at_rows.w]);
    var up_scales = vec2f();
    if MATRICES == 2u {
        up_scales = vec2f(w_scale[ALL_ROWS + at_rows.x], w_scale[ALL_ROWS + at_rows.y]);
    }
    let at_y = token * ALL_ROWS + at_rows;
    var before = vec4f();
    if ADD && is_mine {
        before = vec4f(y[at_y.x], y[at_y.y], y[at_y.z], y[at_y.w]);
    }
    // All loads are in flight together.
    var codes: array<vec4u, STEPS>;
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * LANES + lane % LANES;
        let at = min(i, WORDS - 1u);
        // Past the end of the row, codes are zero and add nothing.
        codes[at_step] = select(
            vec4u(),
            vec4u(w[rows.x + at], w[rows.y + at], w[rows.z + at], w[rows.w + at]),
            i < WORDS,
        );
    }
    // One sum for each token. Sums past the last token are ignored.
    var sum0 = vec4i();
    var sum1 = vec4i();
    var sum2 = vec4i();
    var sum3 = vec4i();
    var sum4 = vec4i();
    var sum5 = vec4i();
    var sum6 = vec4i();
    var sum7 = vec4i();
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let at = min(at_step * LANES + lane % LANES, WORDS - 1u);
        let four = four_rows(codes[at_step]);
        let at_q = first_token * WORDS + at;
        sum0 = add_rows(sum0, four, q[at_q]);
        sum1 = add_rows(sum1, four, q[at_q + WORDS]);
        sum2 = add_rows(sum2, four, q[at_q + 2u * WORDS]);
        sum3 = add_rows(sum3, four, q[at_q + 3u * WORDS]);
        sum4 = add_rows(sum4, four, q[at_q + 4u * WORDS]);
        sum5 = add_rows(sum5, four, q[at_q + 5u * WORDS]);
        sum6 = add_rows(sum6, four, q[at_q + 6u * WORDS]);
        sum7 = add_rows(sum7, four, q[at_q + 7u * WORDS]);
    }
    var d = lanes_sum_vec4i(lane, sum0);
    d = select(d, lanes_sum_vec4i(lane, sum1), lane % LANES == 1u);
    d = select(d, lanes_sum_vec4i(lane, sum2), lane % LANES == 2u);
    d = select(d, lanes_sum_vec4i(lane, sum3), lane % LANES == 3u);
    d = select(d, lanes_sum_vec4i(lane, sum4), lane % LANES == 4u);
    d = select(d, lanes_sum_vec4i(lane, sum5), lane % LANES == 5u);
    d = select(d, lanes_sum_vec4i(lane, sum6), lane % LANES == 6u);
    d = select(d, lanes_sum_vec4i(lane, sum7), lane % LANES == 7u);
    if !is_mine || first >= N_ROWS {
        return;
    }
    if MATRICES == 2u {
        y[at_y.x] = gated(product(d.x, t, scales.x), product(d.y, t, up_scales.x));
        if first + 1u < N_ROWS {
            y[at_y.y] = gated(product(d.z, t, scales.y), product(d.w, t, up_scales.y));
        }
    } else {
        for (var i = 0u; i < 4u; i++) {
            if first + i < N_ROWS {
                y[at_y[i]] = before[i] + unfused(product(d[i], t, scales[i]));
            }
        }
    }
}
