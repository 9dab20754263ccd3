// Y = FACTOR * W Q for many tokens, on tiles in workgroup memory. W has packed rows of codes of 1
// or 2 bits, and Q has int8 rows with a scale for every 32 values. In the tiles, codes of 1 bit
// become codes of 2 bits.
//
// A workgroup computes TILE_ROWS rows by TILE_TOKENS tokens. It takes K in blocks of BLOCK words of
// 2-bit codes, with 16 values each, one after the other. Each of its 16 x 8 threads computes 4 x 4
// results. The codes of four rows are one vector, which is unpacked once for all tokens of a
// thread.
//
// MATRICES = 1: y[token][row] = product, or += product if ADD. MATRICES = 2: the rows come in
// pairs, gate and up, and y[token][row] = activation(gate) * up. A tile then holds 32 pairs. Gate
// and up alternate, so that one thread has both.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
// [n_tokens, Q_VECTORS] int8, see groups.wgsl
@group(0) @binding(3) var<storage, read> q: array<vec4u>;
// [n_tokens, Q_SCALES]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>;
@group(0) @binding(5) var<storage, read> q_factor: array<f32>; // [n_tokens]
@group(0) @binding(6) var<storage, read_write> y: array<f32>; // [n_tokens, ALL_ROWS]

// 16 x 8 threads, 4 x 4 results each.
const_assert WORKGROUP == 128u && TILE_ROWS == 64u && TILE_TOKENS == 32u;
const_assert BITS <= 2u && GROUP >= 64u;
const_assert BLOCK == 8u || BLOCK == 16u;
const_assert K % (16u * BLOCK) == 0u;

const LANES: u32 = 1u; // packed.wgsl needs it
const QUADS: u32 = TILE_ROWS / 4u; // groups of four rows
const WORDS: u32 = K / 16u;
const PARTS: u32 = BLOCK / 8u; // words that a thread loads of each row in a block
const SCALES: u32 = BLOCK / 2u; // scales of activations in a block
// One more than needed, so that neighbours are in different banks.
const QUAD_PITCH: u32 = QUADS + 1u;
const TOKEN_PITCH: u32 = BLOCK + 1u;
const SCALE_PITCH: u32 = SCALES + 1u;

var<workgroup> w_tile: array<vec4u, BLOCK * QUAD_PITCH>;        // [BLOCK][QUADS]
// Scales of 64 values each.
var<workgroup> s_tile: array<vec4f, BLOCK / 4u * QUADS>;        // [BLOCK / 4][QUADS]
var<workgroup> q_tile: array<vec4u, TILE_TOKENS * TOKEN_PITCH>; // [TILE_TOKENS][BLOCK]
var<workgroup> x_tile: array<vec2f, TILE_TOKENS * SCALE_PITCH>; // [TILE_TOKENS][SCALES]

// The row of y to which tile row `i` belongs.
fn row_of(tile: u32, i: u32) -> u32 {
    return tile * (TILE_ROWS / MATRICES) + i / MATRICES;
}

// The row of the shard that holds tile row `i`. Rows past the last use the last one. They are not
// stored.
fn in_shard(tile: u32, i: u32) -> u32 {
    return i % MATRICES * N_ROWS + min(row_of(tile, i), N_ROWS - 1u);
}

fn store(token: u32, row: u32, v: f32) {
    let at = token * ALL_ROWS + FIRST_ROW + row;
    if ADD {
        y[at] = fma(FACTOR, v, y[at]);
    } else {
        y[at] = FACTOR * v;
    }
}

// Four codes of each of four rows times the same four activations.
fn dot_rows(codes: vec4u, q: u32) -> vec4i {
    return vec4i(dot4(codes.x, q), dot4(codes.y, q), dot4(codes.z, q), dot4(codes.w, q));
}

// The words of 2-bit codes for four 1-bit codes each, which are the lowest bits of each byte.
fn widened(words: vec4u) -> vec4u {
    let pairs = (words | (words << vec4u(2u))) & vec4u(0x33333333u);
    return ((pairs | (pairs << vec4u(1u))) & vec4u(0x55555555u)) << vec4u(1u);
}

fn dot_word(c0: vec4u, c1: vec4u, c2: vec4u, c3: vec4u, q: vec4u) -> vec4i {
    return dot_rows(c0, q.x) + dot_rows(c1, q.y) + dot_rows(c2, q.z) + dot_rows(c3, q.w);
}

fn add_scaled(sum: vec4f, s: vec4f, x: vec2f, d: vec4i) -> vec4f {
    return fma(s, fma(vec4f(x.x), vec4f(d), vec4f(-CODE_OF_ZERO * x.y)), sum);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_token = group.y * TILE_TOKENS;
    // The thread loads PARTS words of each of four rows into the tiles, and PARTS vectors of each of two
    // tokens, 16 apart.
    let word_in = lane % 8u;
    let quad_in = lane / 8u;
    let w0 = in_shard(group.x, 4u * quad_in) * WORDS;
    let w1 = in_shard(group.x, 4u * quad_in + 1u) * WORDS;
    let w2 = in_shard(group.x, 4u * quad_in + 2u) * WORDS;
    let w3 = in_shard(group.x, 4u * quad_in + 3u) * WORDS;
    // Tokens past the last use the last token's activations. They are not stored.
    let last = step.n_tokens - 1u;
    let q0 = min(first_token + quad_in, last) * Q_VECTORS;
    let q1 = min(first_token + quad_in + 16u, last) * Q_VECTORS;
    // The thread also loads PARTS scales of one of 32 tokens, four apart, and one vector of row
    // scales.
    let x0 = min(first_token + lane / 4u, last) * Q_SCALES + lane % 4u;
    let s_quad = 4u * (lane % QUADS);
    let s_part = lane / QUADS * 64u;
    // The thread multiplies four rows by the tokens my_token, + 8, + 16 and + 24.
    let my_quad = lane / 8u;
    let my_token = lane % 8u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    for (var block = 0u; block < WORDS / BLOCK; block++) {
        workgroupBarrier();
        for (var part = 0u; part < PARTS; part++) {
            let word = part * 8u + word_in;
            let at = block * BLOCK + word;
            if BITS == 1u {
                // A word of 1-bit codes has the codes of two words.
                let words = vec4u(
                    w[(w0 + at) / 2u],
                    w[(w1 + at) / 2u],
                    w[(w2 + at) / 2u],
                    w[(w3 + at) / 2u],
                );
                w_tile[word * QUAD_PITCH + quad_in] =
                    widened((words >> vec4u(at % 2u * 4u)) & vec4u(0x0f0f0f0fu));
            } else {
                w_tile[word * QUAD_PITCH + quad_in] =
                    vec4u(w[w0 + at], w[w1 + at], w[w2 + at], w[w3 + at]);
            }
            // In this order, neighbouring lanes read neighbours of q.
            let word_of_q = word_in % (2u * PARTS) * 4u + word_in / (2u * PARTS) + part * 2u;
            let at_q = sixteen_at(block * BLOCK + word_of_q);
            q_tile[quad_in * TOKEN_PITCH + word_of_q] = q[q0 + at_q];
            q_tile[(quad_in + 16u) * TOKEN_PITCH + word_of_q] = q[q1 + at_q];
            x_tile[lane / 4u * SCALE_PITCH + part * 4u + lane % 4u] =
                q_scale[x0 + block * SCALES + part * 4u];
        }
        if lane < BLOCK / 4u * QUADS {
            let value = block * BLOCK * 16u + s_part;
            s_tile[lane] = vec4f(
                scale_offset(in_shard(group.x, s_quad), value).x,
                scale_offset(in_shard(group.x, s_quad + 1u), value).x,
                scale_offset(in_shard(group.x, s_quad + 2u), value).x,
                scale_offset(in_shard(group.x, s_quad + 3u), value).x,
            );
        }
        workgroupBarrier();
        for (var four = 0u; four < SCALES; four++) {
            let s = s_tile[four / 2u * QUADS + my_quad];
            let a = w_tile[2u * four * QUAD_PITCH + my_quad];
            let b = w_tile[(2u * four + 1u) * QUAD_PITCH + my_quad];
            let mask = vec4u(0x03030303u);
            let a0 = a & mask;
            let a1 = (a >> vec4u(2u)) & mask;
            let a2 = (a >> vec4u(4u)) & mask;
            let a3 = (a >> vec4u(6u)) & mask;
            let b0 = b & mask;
            let b1 = (b >> vec4u(2u)) & mask;
            let b2 = (b >> vec4u(4u)) & mask;
            let b3 = (b >> vec4u(6u)) & mask;
            let at_q = my_token * TOKEN_PITCH + 2u * four;
            let at_x = my_token * SCALE_PITCH + four;
            let d0 = dot_word(a0, a1, a2, a3, q_tile[at_q])
                + dot_word(b0, b1, b2, b3, q_tile[at_q + 1u]);
            sum0 = add_scaled(sum0, s, x_tile[at_x], d0);
            let d1 = dot_word(a0, a1, a2, a3, q_tile[at_q + 8u * TOKEN_PITCH])
                + dot_word(b0, b1, b2, b3, q_tile[at_q + 8u * TOKEN_PITCH + 1u]);
            sum1 = add_scaled(sum1, s, x_tile[at_x + 8u * SCALE_PITCH], d1);
            let d2 = dot_word(a0, a1, a2, a3, q_tile[at_q + 16u * TOKEN_PITCH])
                + dot_word(b0, b1, b2, b3, q_tile[at_q + 16u * TOKEN_PITCH + 1u]);
            sum2 = add_scaled(sum2, s, x_tile[at_x + 16u * SCALE_PITCH], d2);
            let d3 = dot_word(a0, a1, a2, a3, q_tile[at_q + 24u * TOKEN_PITCH])
                + dot_word(b0, b1, b2, b3, q_tile[at_q + 24u * TOKEN_PITCH + 1u]);
            sum3 = add_scaled(sum3, s, x_tile[at_x + 24u * SCALE_PITCH], d3);
        }
    }
    finish(first_token + my_token, group.x, 4u * my_quad, sum0);
    finish(first_token + my_token + 8u, group.x, 4u * my_quad, sum1);
    finish(first_token + my_token + 16u, group.x, 4u * my_quad, sum2);
    finish(first_token + my_token + 24u, group.x, 4u * my_quad, sum3);
}

// Stores the results of tile rows first .. first + 3 for one token.
fn finish(token: u32, tile: u32, first: u32, v: vec4f) {
    if token >= step.n_tokens {
        return;
    }
    let factor = q_factor[token];
    if MATRICES == 1u {
        for (var i = 0u; i < 4u; i++) {
            let row = row_of(tile, first + i);
            if row < N_ROWS {
                store(token, row, factor * v[i]);
            }
        }
    } else {
        for (var pair = 0u; pair < 2u; pair++) {
            let row = row_of(tile, first + 2u * pair);
            if row < N_ROWS {
                store(token, row, gated(factor * v[2u * pair], factor * v[2u * pair + 1u]));
            }
        }
    }
}
