// Y = W Q for many tokens: ternary rows times int8 rows, on tiles in workgroup memory.
//
// A workgroup makes TILE rows by TILE tokens, each of its 16 x 16 threads 4 x 4 of them, stepping
// through K one 128-element block at a time.
//
// PARTS = 1: y[token][row] = product, or += product if ADD.
// PARTS = 2: the rows come in pairs, gate and up, and y[token][row] = relu(gate)² * up. A tile then
// holds 32 pairs, gate and up alternating, so that both halves of a pair meet in one thread.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<u32>;         // [PARTS, N_ROWS, K] codes
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;   // [PARTS, ALL_ROWS]
@group(0) @binding(3) var<storage, read> q: array<vec4u>;       // [n_tokens, K] int8, see quantize.wgsl
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>; // [n_tokens]: s, sum of q
@group(0) @binding(5) var<storage, read_write> y: array<f32>;   // [n_tokens, ALL_ROWS]

const WORKGROUP: u32 = 256u;
const TILE: u32 = 64u;
const WORDS: u32 = K / 16u;
const BLOCK: u32 = 8u; // words of codes in a 128-element block
const PITCH: u32 = 9u; // one more, so that rows fall on different banks

var<workgroup> w_tile: array<u32, TILE * PITCH>;
var<workgroup> q_tile: array<vec4u, TILE * PITCH>;

fn dot_word(word: u32, q: vec4u) -> i32 {
    return dot4I8Packed((word >> 6u) & 0x03030303u, q.x)
        + dot4I8Packed((word >> 4u) & 0x03030303u, q.y)
        + dot4I8Packed((word >> 2u) & 0x03030303u, q.z)
        + dot4I8Packed(word & 0x03030303u, q.w);
}

fn dot_tokens(word: u32, q0: vec4u, q1: vec4u, q2: vec4u, q3: vec4u) -> vec4i {
    return vec4i(dot_word(word, q0), dot_word(word, q1), dot_word(word, q2), dot_word(word, q3));
}

// The row of y that tile row `i` belongs to.
fn row_of(tile: u32, i: u32) -> u32 {
    return tile * (TILE / PARTS) + i / PARTS;
}

fn store(token: u32, row: u32, v: f32) {
    let at = token * ALL_ROWS + FIRST_ROW + row;
    if ADD {
        y[at] += v;
    } else {
        y[at] = v;
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_token = group.y * TILE;
    let n_tokens = step.n_tokens;
    var sum0 = vec4i(); // row 0 of four, by token
    var sum1 = vec4i();
    var sum2 = vec4i();
    var sum3 = vec4i();
    let my_rows = lane / 16u;   // rows my_rows, +16, +32, +48 of the tile, or neighbours: see below
    let my_tokens = lane % 16u; // tokens my_tokens, +16, +32, +48
    for (var block = 0u; block < WORDS / BLOCK; block++) {
        workgroupBarrier();
        for (var i = lane; i < TILE * BLOCK; i += WORKGROUP) {
            let r = i / BLOCK;
            let word = i % BLOCK;
            let row = row_of(group.x, r);
            var codes = 0u;
            if row < N_ROWS {
                codes = w[((r % PARTS) * N_ROWS + row) * WORDS + block * BLOCK + word];
            }
            w_tile[r * PITCH + word] = codes;
            let token = first_token + r;
            var values = vec4u();
            if token < n_tokens {
                values = q[token * WORDS + block * BLOCK + word];
            }
            q_tile[r * PITCH + word] = values;
        }
        workgroupBarrier();
        for (var word = 0u; word < BLOCK; word++) {
            let q0 = q_tile[my_tokens * PITCH + word];
            let q1 = q_tile[(my_tokens + 16u) * PITCH + word];
            let q2 = q_tile[(my_tokens + 32u) * PITCH + word];
            let q3 = q_tile[(my_tokens + 48u) * PITCH + word];
            sum0 += dot_tokens(w_tile[(4u * my_rows) * PITCH + word], q0, q1, q2, q3);
            sum1 += dot_tokens(w_tile[(4u * my_rows + 1u) * PITCH + word], q0, q1, q2, q3);
            sum2 += dot_tokens(w_tile[(4u * my_rows + 2u) * PITCH + word], q0, q1, q2, q3);
            sum3 += dot_tokens(w_tile[(4u * my_rows + 3u) * PITCH + word], q0, q1, q2, q3);
        }
    }
    for (var i = 0u; i < 4u; i++) {
        let token = first_token + my_tokens + 16u * i;
        if token < n_tokens {
            let d = vec4i(sum0[i], sum1[i], sum2[i], sum3[i]);
            finish(token, group.x, 4u * my_rows, d);
        }
    }
}

// Stores what tile rows first .. first + 3 give for one token.
fn finish(token: u32, tile: u32, first: u32, d: vec4i) {
    let t = q_scale[token];
    if PARTS == 1u {
        for (var i = 0u; i < 4u; i++) {
            let row = row_of(tile, first + i);
            if row < N_ROWS {
                store(token, row, product(d[i], t, w_scale[FIRST_ROW + row]));
            }
        }
    } else {
        for (var i = 0u; i < 4u; i += 2u) {
            let row = row_of(tile, first + i);
            if row < N_ROWS {
                let gate = product(d[i], t, w_scale[FIRST_ROW + row]);
                let up = product(d[i + 1u], t, w_scale[ALL_ROWS + FIRST_ROW + row]);
                store(token, row, relu2_glu(gate, up));
            }
        }
    }
}
