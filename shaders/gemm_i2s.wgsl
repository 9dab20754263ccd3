// Y = W Q for many tokens: ternary rows times int8 rows, on tiles in workgroup memory.
//
// A workgroup computes TILE_ROWS rows by TILE_TOKENS tokens. It takes K in blocks of 128 elements,
// one after the other. Each of its 16 x 8 threads computes 4 x 4 results. The codes of four rows
// are one vector, which is unpacked once for all tokens of a thread.

// 16 x 8 threads, 4 x 4 results each.
const_assert WORKGROUP == 128u && TILE_ROWS == 64u && TILE_TOKENS == 32u;

const QUADS: u32 = TILE_ROWS / 4u; // groups of four rows
const BLOCK: u32 = 8u; // words of codes in a 128-element block
const QUAD_PITCH: u32 = QUADS + 1u; // one more than needed, so that words are in different banks
const TOKEN_PITCH: u32 = BLOCK + 1u; // one more for the same reason

var<workgroup> w_tile: array<vec4u, BLOCK * QUAD_PITCH>;        // [BLOCK][QUADS]
var<workgroup> q_tile: array<vec4u, TILE_TOKENS * TOKEN_PITCH>; // [TILE_TOKENS][BLOCK]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_token = group.y * TILE_TOKENS;
    // The thread loads one word of each of four rows into the tiles, and one word of each of two
    // tokens, 16 apart.
    let word_in = lane % BLOCK;
    let quad_in = lane / BLOCK;
    let w0 = codes_of(group.x, 4u * quad_in) + word_in;
    let w1 = codes_of(group.x, 4u * quad_in + 1u) + word_in;
    let w2 = codes_of(group.x, 4u * quad_in + 2u) + word_in;
    let w3 = codes_of(group.x, 4u * quad_in + 3u) + word_in;
    // Tokens past the last use the last token's activations. They are not stored.
    let last = step.n_tokens - 1u;
    let q0 = min(first_token + quad_in, last) * WORDS + word_in;
    let q1 = min(first_token + quad_in + 16u, last) * WORDS + word_in;
    // The thread multiplies four rows by the tokens my_token, + 8, + 16 and + 24.
    let my_quad = lane / 8u;
    let my_token = lane % 8u;
    var sum0 = vec4i();
    var sum1 = vec4i();
    var sum2 = vec4i();
    var sum3 = vec4i();
    for (var block = 0u; block < WORDS / BLOCK; block++) {
        let at = block * BLOCK;
        workgroupBarrier();
        w_tile[word_in * QUAD_PITCH + quad_in] =
            vec4u(w[w0 + at], w[w1 + at], w[w2 + at], w[w3 + at]);
        q_tile[quad_in * TOKEN_PITCH + word_in] = q[q0 + at];
        q_tile[(quad_in + 16u) * TOKEN_PITCH + word_in] = q[q1 + at];
        workgroupBarrier();
        for (var word = 0u; word < BLOCK; word++) {
            let four = four_rows(w_tile[word * QUAD_PITCH + my_quad]);
            let at_token = my_token * TOKEN_PITCH + word;
            sum0 = add_rows(sum0, four, q_tile[at_token]);
            sum1 = add_rows(sum1, four, q_tile[at_token + 8u * TOKEN_PITCH]);
            sum2 = add_rows(sum2, four, q_tile[at_token + 16u * TOKEN_PITCH]);
            sum3 = add_rows(sum3, four, q_tile[at_token + 24u * TOKEN_PITCH]);
        }
    }
    finish(first_token + my_token, group.x, 4u * my_quad, sum0);
    finish(first_token + my_token + 8u, group.x, 4u * my_quad, sum1);
    finish(first_token + my_token + 16u, group.x, 4u * my_quad, sum2);
    finish(first_token + my_token + 24u, group.x, 4u * my_quad, sum3);
}

// Stores the results of tile rows first .. first + 3 for one token.
fn finish(token: u32, tile: u32, first: u32, d: vec4i) {
    if token >= step.n_tokens {
        return;
    }
    if MATRICES == 1u {
        for (var i = 0u; i < 4u; i++) {
            finish_row(token, tile, first + i, d[i]);
        }
    } else {
        for (var pair = 0u; pair < 2u; pair++) {
            let i = 2u * pair;
            finish_pair(token, tile, first + i, d[i], d[i + 1u]);
        }
    }
}
