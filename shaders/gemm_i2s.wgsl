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

// One token against the thread's four rows.
fn dot_rows(w: vec4u, q: vec4u) -> vec4i {
    return vec4i(dot_word(w.x, q), dot_word(w.y, q), dot_word(w.z, q), dot_word(w.w, q));
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
    let first_row = lane / 16u * 4u; // of the thread's four rows, in the tile
    let my_token = lane % 16u;       // of its four tokens my_token, +16, +32, +48
    // A short prompt fills a tile only in part: the empty quarters cost nothing.
    let quarters = (min(n_tokens - first_token, TILE) + 15u) / 16u;
    var sum0 = vec4i(); // token my_token, four rows
    var sum1 = vec4i();
    var sum2 = vec4i();
    var sum3 = vec4i();
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
            let w4 = vec4u(
                w_tile[first_row * PITCH + word],
                w_tile[(first_row + 1u) * PITCH + word],
                w_tile[(first_row + 2u) * PITCH + word],
                w_tile[(first_row + 3u) * PITCH + word],
            );
            sum0 += dot_rows(w4, q_tile[my_token * PITCH + word]);
            if quarters > 1u {
                sum1 += dot_rows(w4, q_tile[(my_token + 16u) * PITCH + word]);
            }
            if quarters > 2u {
                sum2 += dot_rows(w4, q_tile[(my_token + 32u) * PITCH + word]);
            }
            if quarters > 3u {
                sum3 += dot_rows(w4, q_tile[(my_token + 48u) * PITCH + word]);
            }
        }
    }
    finish(first_token + my_token, group.x, first_row, sum0);
    finish(first_token + my_token + 16u, group.x, first_row, sum1);
    finish(first_token + my_token + 32u, group.x, first_row, sum2);
    finish(first_token + my_token + 48u, group.x, first_row, sum3);
}

// Stores what tile rows first .. first + 3 give for one token.
fn finish(token: u32, tile: u32, first: u32, d: vec4i) {
    if token >= step.n_tokens {
        return;
    }
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
