// Y = W Q for BATCH tokens at a time, 1 or 4: ternary rows times int8 vectors. LANES lanes share a
// row, and each word of codes is read once for all tokens of the batch.
//
// PARTS = 1: y[token][row] = product, or y[token][row] += product if ADD.
// PARTS = 2: the rows come in pairs, gate and up, and y[token][row] = relu(gate)² * up.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec2u>;       // [PARTS, N_ROWS, K] codes, K / 16 words a row
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;   // [PARTS, ALL_ROWS]
@group(0) @binding(3) var<storage, read> q: array<vec4u>;       // [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>; // [n_tokens]: s, sum of q
@group(0) @binding(5) var<storage, read_write> y: array<f32>;   // [n_tokens, ALL_ROWS]

const PAIRS: u32 = K / 32u; // pairs of words in a row
const ROWS: u32 = WORKGROUP / LANES / PARTS; // of y, in one workgroup

var<workgroup> parts: array<vec4i, WORKGROUP / LANES>;

// Pair `i` of the row that begins at `first`; past the row zeros, which add nothing.
fn codes(first: u32, i: u32) -> vec2u {
    return select(vec2u(), w[first + min(i, PAIRS - 1u)], i < PAIRS);
}

fn dot_word(word: u32, q: vec4u) -> i32 {
    return dot4I8Packed((word >> 6u) & 0x03030303u, q.x)
        + dot4I8Packed((word >> 4u) & 0x03030303u, q.y)
        + dot4I8Packed((word >> 2u) & 0x03030303u, q.z)
        + dot4I8Packed(word & 0x03030303u, q.w);
}

// Four pairs of words against the token whose values begin at `first`.
fn dot_pairs(first: u32, i: vec4u, w0: vec2u, w1: vec2u, w2: vec2u, w3: vec2u) -> i32 {
    let at = first + 2u * min(i, vec4u(PAIRS - 1u));
    let a0 = q[at.x];
    let b0 = q[at.x + 1u];
    let a1 = q[at.y];
    let b1 = q[at.y + 1u];
    let a2 = q[at.z];
    let b2 = q[at.z + 1u];
    let a3 = q[at.w];
    let b3 = q[at.w + 1u];
    return dot_word(w0.x, a0) + dot_word(w0.y, b0) + dot_word(w1.x, a1) + dot_word(w1.y, b1)
        + dot_word(w2.x, a2) + dot_word(w2.y, b2) + dot_word(w3.x, a3) + dot_word(w3.y, b3);
}

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
    let slot = lane / LANES; // of the row and part this lane works on
    let part = slot / ROWS;
    let row = group.x * ROWS + slot % ROWS;
    let token = group.y * BATCH;
    let n_tokens = min(BATCH, step.n_tokens - token);
    var sum = vec4i(); // by token; past n_tokens it is of no use and of no harm
    if row < N_ROWS {
        let first = (part * N_ROWS + row) * PAIRS;
        let first_q = token * 2u * PAIRS;
        // Written out four times: browsers guard every loop with a counter, which keeps compilers
        // from unrolling it, and waiting for one load after the other takes twice as long.
        for (var base = lane % LANES; base < PAIRS; base += 4u * LANES) {
            let i = base + vec4u(0u, LANES, 2u * LANES, 3u * LANES);
            let w0 = codes(first, i.x);
            let w1 = codes(first, i.y);
            let w2 = codes(first, i.z);
            let w3 = codes(first, i.w);
            sum.x += dot_pairs(first_q, i, w0, w1, w2, w3);
            if BATCH > 1u {
                sum.y += dot_pairs(first_q + 2u * PAIRS, i, w0, w1, w2, w3);
                sum.z += dot_pairs(first_q + 4u * PAIRS, i, w0, w1, w2, w3);
                sum.w += dot_pairs(first_q + 6u * PAIRS, i, w0, w1, w2, w3);
            }
        }
    }
    var d = vec4i();
    if BATCH > 1u {
        d = lanes_sum_vec4i(lane, sum);
    } else {
        d.x = lanes_sum_i32(lane, sum.x);
    }
    if PARTS == 1u {
        if lane % LANES == 0u && row < N_ROWS {
            let at = FIRST_ROW + row;
            for (var i = 0u; i < n_tokens; i++) {
                store(token + i, at, product(d[i], q_scale[token + i], w_scale[at]));
            }
        }
    } else {
        if lane % LANES == 0u {
            parts[slot] = d;
        }
        workgroupBarrier();
        if lane < ROWS && group.x * ROWS + lane < N_ROWS {
            let at = FIRST_ROW + group.x * ROWS + lane;
            let gate = parts[lane];
            let up = parts[ROWS + lane];
            for (var i = 0u; i < n_tokens; i++) {
                let t = q_scale[token + i];
                let v = relu2_glu(
                    product(gate[i], t, w_scale[at]),
                    product(up[i], t, w_scale[ALL_ROWS + at]),
                );
                store(token + i, at, v);
            }
        }
    }
}
