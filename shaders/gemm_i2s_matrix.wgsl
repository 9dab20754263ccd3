// Y = W Q for many tokens, as gemm_i2s, on the adapter's matrix units. The sums are the same.
//
// A workgroup computes 128 rows by 128 tokens. It takes K in blocks, one after the other, and
// unpacks a block's codes into workgroup memory, beside the activations. Its eight subgroups of 32
// lanes share the tile: two along the tokens by four along the rows. Each subgroup holds its sums
// as matrices of 16 tokens by 16 rows, four by two of them.
//
// matrix_units.wgsl declares the functions that multiply matrices, and BLOCK: the words of codes
// that a row has in the tile at a time.

const DOWN: u32 = 2u;   // subgroups along the tokens
const ACROSS: u32 = 4u; // subgroups along the rows

const_assert WORKGROUP == 32u * DOWN * ACROSS && TILE_ROWS == 128u && TILE_TOKENS == 128u;

const SHARE: u32 = WORKGROUP / BLOCK; // rows that the workgroup loads at a time
const LOADS: u32 = 128u / SHARE;
const PITCH: u32 = 4u * BLOCK + 4u; // four more, so that eight rows are in different banks
const SUMS_PITCH: u32 = 16u * ACROSS + 8u;

// Four codes, or four activations, in a word: [ACROSS][32 rows][PITCH] and [DOWN][64
// tokens][PITCH]. At the end q_tiles has sums, [DOWN][16 tokens][SUMS_PITCH].
var<workgroup> w_tiles: array<array<i32, 32u * PITCH>, ACROSS>;
var<workgroup> q_tiles: array<array<i32, max(64u * PITCH, 16u * SUMS_PITCH)>, DOWN>;

// Stores the sums of one matrix of each subgroup. `i` is its number along the tokens, and `j` along
// the rows.
fn finish_sums(sums: Sums, i: u32, j: u32, group: vec3u, lane: u32, down: u32, across: u32) {
    workgroupBarrier();
    store_sums(sums, down, 16u * across);
    workgroupBarrier();
    for (var n = 0u; n < 16u * DOWN * 16u * ACROSS / MATRICES / WORKGROUP; n++) {
        let at = (n * WORKGROUP + lane) * MATRICES;
        let line = at / (16u * ACROSS);
        let column = at % (16u * ACROSS);
        let token = group.y * TILE_TOKENS + line / 16u * 64u + i * 16u + line % 16u;
        let row = column / 16u * 32u + j * 16u + column % 16u;
        let source = line % 16u * SUMS_PITCH + column;
        if token < step.n_tokens {
            let sum = q_tiles[line / 16u][source];
            if MATRICES == 1u {
                finish_row(token, group.x, row, sum);
            } else {
                finish_pair(token, group.x, row, sum, q_tiles[line / 16u][source + 1u]);
            }
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    // Tokens past the last use the last token's activations. They are not stored.
    let last = step.n_tokens - 1u;
    // The thread loads this word of every SHARE-th row and token.
    let word_in = lane % BLOCK;
    let row_in = lane / BLOCK;
    var w_in: array<u32, LOADS>;
    var q_in: array<u32, LOADS>;
    for (var i = 0u; i < LOADS; i++) {
        w_in[i] = codes_of(group.x, row_in + i * SHARE) + word_in;
        q_in[i] = min(group.y * TILE_TOKENS + row_in + i * SHARE, last) * WORDS + word_in;
    }
    let part = part_of(lane, subgroup);
    let down = part / ACROSS;
    let across = part % ACROSS;
    var sums: TileSums;
    for (var block = 0u; block < WORDS / BLOCK; block++) {
        let at = block * BLOCK;
        workgroupBarrier();
        for (var i = 0u; i < LOADS; i++) {
            let codes = vec4u(w[w_in[i] + at]) >> vec4u(6u, 4u, 2u, 0u);
            let four = bitcast<vec4i>(codes & vec4u(0x03030303u));
            let row = row_in + i * SHARE;
            let to = row % 32u * PITCH + 4u * word_in;
            w_tiles[row / 32u][to] = four.x;
            w_tiles[row / 32u][to + 1u] = four.y;
            w_tiles[row / 32u][to + 2u] = four.z;
            w_tiles[row / 32u][to + 3u] = four.w;
        }
        for (var i = 0u; i < LOADS; i++) {
            let four = bitcast<vec4i>(q[q_in[i] + at]);
            let token = row_in + i * SHARE;
            let to = token % 64u * PITCH + 4u * word_in;
            q_tiles[token / 64u][to] = four.x;
            q_tiles[token / 64u][to + 1u] = four.y;
            q_tiles[token / 64u][to + 2u] = four.z;
            q_tiles[token / 64u][to + 3u] = four.w;
        }
        workgroupBarrier();
        add_block(&sums, down, across);
    }
    finish_sums(sums[0], 0u, 0u, group, lane, down, across);
    finish_sums(sums[1], 0u, 1u, group, lane, down, across);
    finish_sums(sums[2], 1u, 0u, group, lane, down, across);
    finish_sums(sums[3], 1u, 1u, group, lane, down, across);
    finish_sums(sums[4], 2u, 0u, group, lane, down, across);
    finish_sums(sums[5], 2u, 1u, group, lane, down, across);
    finish_sums(sums[6], 3u, 0u, group, lane, down, across);
    finish_sums(sums[7], 3u, 1u, group, lane, down, across);
}
