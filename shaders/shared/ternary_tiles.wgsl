// The rows of a tile of ternary products, and the use of its sums.
//
// MATRICES = 1: y[token][row] = product, or += product if ADD. MATRICES = 2: the rows come in
// pairs, gate and up, and y[token][row] = activation(gate) * up. A tile then holds half as many pairs
// as rows. Gate and up alternate, so that one thread has both.

@group(0) @binding(0) var<uniform> step: Step;
// [MATRICES, N_ROWS, K] codes
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

// The row of y to which tile row `i` belongs.
fn row_of(tile: u32, i: u32) -> u32 {
    return tile * (TILE_ROWS / MATRICES) + i / MATRICES;
}

// The word where the codes of tile row `i` begin. Rows past the last use the last row's codes. They
// are not stored.
fn codes_of(tile: u32, i: u32) -> u32 {
    return (i % MATRICES * N_ROWS + min(row_of(tile, i), N_ROWS - 1u)) * WORDS;
}

fn store(token: u32, row: u32, v: f32) {
    let at = token * ALL_ROWS + FIRST_ROW + row;
    if ADD {
        y[at] += v;
    } else {
        y[at] = v;
    }
}

// Stores the sum `d` of tile row `i` for one token.
fn finish_row(token: u32, tile: u32, i: u32, d: i32) {
    let row = row_of(tile, i);
    if row < N_ROWS {
        store(token, row, product(d, q_scale[token], w_scale[FIRST_ROW + row]));
    }
}

// Stores the sums of tile rows `i` and `i` + 1, which are a gate and its up.
fn finish_pair(token: u32, tile: u32, i: u32, gate: i32, up: i32) {
    let row = row_of(tile, i);
    if row < N_ROWS {
        let t = q_scale[token];
        let g = product(gate, t, w_scale[FIRST_ROW + row]);
        let u = product(up, t, w_scale[ALL_ROWS + FIRST_ROW + row]);
        store(token, row, gated(g, u));
    }
}
