// What matrix_units.wgsl does, with ordinary operations, so that adapters without matrix units can
// test the kernel. It is slow.
//
// Each of 32 lanes holds eight sums of a matrix: half of a token's. Of what is multiplied it only
// notes the place.

alias Tokens = u32;
alias Rows = u32;
alias Sums = array<i32, 8>;

var<private> own_token: u32;
var<private> own_rows: u32;

fn load_tokens(at: u32) -> Tokens {
    return at + own_token * PITCH;
}

fn load_rows(at: u32) -> Rows {
    return at + own_rows * PITCH;
}

fn add_products(before: Sums, tokens: Tokens, rows: Rows) -> Sums {
    var sums = before;
    for (var i = 0u; i < 8u; i++) {
        for (var word = 0u; word < 8u; word++) {
            let q = bitcast<u32>(tiles[tokens + word]);
            sums[i] += dot4(bitcast<u32>(tiles[rows + i * PITCH + word]), q);
        }
    }
    return sums;
}

fn store_sums(at: u32, given: Sums) {
    var sums = given;
    for (var i = 0u; i < 8u; i++) {
        tiles[at + own_token * TILE_ROWS + own_rows + i] = sums[i];
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    own_token = lane % 32u / 2u;
    own_rows = lane % 2u * 8u;
    multiply(group, lane, lane / 32u);
}
