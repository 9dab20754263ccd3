// Does the work of matrix_units.wgsl with ordinary operations, so that adapters without matrix
// units can test the kernel. It is slow.
//
// Each of 32 lanes holds eight sums of a matrix, which are half of a token's sums.

alias Sums = array<i32, 8>;
alias TileSums = array<Sums, 8>; // [4][2]: tokens, rows

const BLOCK: u32 = 2u; // with this size the tile fits into the workgroup memory that every adapter has

var<private> own_token: u32;
var<private> own_row: u32;

// The part of the tile that 32 lanes compute. The adapter's own subgroups may have another size.
fn part_of(lane: u32, subgroup: u32) -> u32 {
    own_token = lane % 32u / 2u;
    own_row = lane % 2u * 8u;
    return lane / 32u;
}

fn add_block(sums: ptr<function, TileSums>, down: u32, across: u32) {
    for (var matrix = 0u; matrix < 8u; matrix++) {
        let token = (matrix / 2u * 16u + own_token) * PITCH;
        let first_row = matrix % 2u * 16u + own_row;
        for (var i = 0u; i < 8u; i++) {
            let row = (first_row + i) * PITCH;
            for (var word = 0u; word < 4u * BLOCK; word++) {
                let q = bitcast<u32>(q_tiles[down][token + word]);
                (*sums)[matrix][i] += dot4I8Packed(bitcast<u32>(w_tiles[across][row + word]), q);
            }
        }
    }
}

fn store_sums(given: Sums, down: u32, at: u32) {
    var sums = given;
    for (var i = 0u; i < 8u; i++) {
        q_tiles[down][own_token * SUMS_PITCH + at + own_row + i] = sums[i];
    }
}
