// Y = W Q for many tokens, as gemm_i2s, on the adapter's matrix units. The sums are the same.
//
// A workgroup computes TILE_ROWS rows by TILE_TOKENS tokens, one block of K after the other. It
// unpacks the block's codes into workgroup memory, beside the activations. Its DOWN x ACROSS
// subgroups share the tile, DOWN along the tokens. Each holds its sums as matrices of 16 tokens by 16
// rows.
//
// matrix_units.wgsl declares what multiplies matrices, and the entry point.

// Subgroups have 32 lanes. An operation takes 32 values, which are the words of two words of codes.
const_assert WORKGROUP == 32u * DOWN * ACROSS && BLOCK % 2u == 0u;

const SHARE: u32 = WORKGROUP / BLOCK;            // rows that the workgroup loads at a time
const PITCH: u32 = 4u * BLOCK + 4u;              // four more, so that eight rows are in different banks
const FIRST_TOKEN: u32 = TILE_ROWS * PITCH;      // where the tokens begin in `tiles`
const DOWN_EACH: u32 = TILE_TOKENS / DOWN / 16u; // matrices of a subgroup
const ACROSS_EACH: u32 = TILE_ROWS / ACROSS / 16u;
const N_STORED: u32 = 16u * DOWN * TILE_ROWS;    // sums that are stored at a time

// First codes [TILE_ROWS][PITCH] and activations [TILE_TOKENS][PITCH], four in a word. In the end sums
// [DOWN][16][TILE_ROWS].
var<workgroup> tiles: array<i32, (TILE_ROWS + TILE_TOKENS) * PITCH>;
const_assert N_STORED <= (TILE_ROWS + TILE_TOKENS) * PITCH;

fn put(at: u32, four: vec4u) {
    let words = bitcast<vec4i>(four);
    tiles[at] = words.x;
    tiles[at + 1u] = words.y;
    tiles[at + 2u] = words.z;
    tiles[at + 3u] = words.w;
}

fn multiply(group: vec3u, lane: u32, subgroup: u32) {
    let first_token = group.y * TILE_TOKENS;
    // Tokens past the last use the last token's activations. They are not stored.
    let last = step.n_tokens - 1u;
    // The thread loads this word of each row and token SHARE apart.
    let word_in = lane % BLOCK;
    let row_in = lane / BLOCK;
    var w_in: array<u32, TILE_ROWS / SHARE>;
    for (var i = 0u; i < TILE_ROWS / SHARE; i++) {
        w_in[i] = codes_of(group.x, row_in + i * SHARE) + word_in;
    }
    var q_in: array<u32, TILE_TOKENS / SHARE>;
    for (var i = 0u; i < TILE_TOKENS / SHARE; i++) {
        q_in[i] = min(first_token + row_in + i * SHARE, last) * WORDS + word_in;
    }
    let to = row_in * PITCH + 4u * word_in;
    // The subgroup's part of the tile.
    let down = subgroup / ACROSS * DOWN_EACH;
    let across = subgroup % ACROSS * ACROSS_EACH;
    let tokens_at = FIRST_TOKEN + 16u * down * PITCH;
    let rows_at = 16u * across * PITCH;
    var sums: array<array<Sums, ACROSS_EACH>, DOWN_EACH>;
    for (var block = 0u; block < WORDS / BLOCK; block++) {
        let at = block * BLOCK;
        workgroupBarrier();
        for (var i = 0u; i < TILE_ROWS / SHARE; i++) {
            let codes = vec4u(w[w_in[i] + at]) >> vec4u(6u, 4u, 2u, 0u);
            put(to + i * SHARE * PITCH, codes & vec4u(0x03030303u));
        }
        for (var i = 0u; i < TILE_TOKENS / SHARE; i++) {
            put(to + FIRST_TOKEN + i * SHARE * PITCH, q[q_in[i] + at]);
        }
        workgroupBarrier();
        for (var pair = 0u; pair < BLOCK / 2u; pair++) {
            var tokens: array<Tokens, DOWN_EACH>;
            for (var i = 0u; i < DOWN_EACH; i++) {
                tokens[i] = load_tokens(tokens_at + 16u * i * PITCH + 8u * pair);
            }
            for (var j = 0u; j < ACROSS_EACH; j++) {
                let rows = load_rows(rows_at + 16u * j * PITCH + 8u * pair);
                for (var i = 0u; i < DOWN_EACH; i++) {
                    sums[i][j] = add_products(sums[i][j], tokens[i], rows);
                }
            }
        }
    }
    for (var part = 0u; part < DOWN_EACH; part++) {
        workgroupBarrier();
        // Unrolled, these loops index `sums` by constants: lanes hold matrices in registers.
        for (var i = 0u; i < DOWN_EACH; i++) {
            if i == part {
                for (var j = 0u; j < ACROSS_EACH; j++) {
                    let stored_at = 16u * (subgroup / ACROSS * TILE_ROWS + across + j);
                    store_sums(stored_at, sums[i][j]);
                }
            }
        }
        workgroupBarrier();
        for (var n = 0u; n < N_STORED / MATRICES / WORKGROUP; n++) {
            let at = (n * WORKGROUP + lane) * MATRICES;
            let line = at / TILE_ROWS;
            let token = first_token + 16u * (line / 16u * DOWN_EACH + part) + line % 16u;
            if token < step.n_tokens {
                if MATRICES == 1u {
                    finish_row(token, group.x, at % TILE_ROWS, tiles[at]);
                } else {
                    finish_pair(token, group.x, at % TILE_ROWS, tiles[at], tiles[at + 1u]);
                }
            }
        }
    }
}
