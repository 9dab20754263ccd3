// Products of int8 matrices on the adapter's matrix units: 16 tokens x 32 values by 32 values x 16
// rows, exactly summed in i32. The lanes of a subgroup hold a matrix together. Places in `tiles` are
// the same for all of them.
//
// Chromium counts int8 values, not words, where it loads them.

alias Tokens = subgroup_matrix_left<i8, 32, 16>;
alias Rows = subgroup_matrix_right<i8, 16, 32>;
alias Sums = subgroup_matrix_result<i32, 16, 16>;

// 32 values of 16 tokens, from a word of `tiles` on.
fn load_tokens(at: u32) -> Tokens {
    return subgroupMatrixLoad<Tokens>(&tiles, 4u * at, false, 4u * PITCH);
}

// 32 codes of 16 rows.
fn load_rows(at: u32) -> Rows {
    return subgroupMatrixLoad<Rows>(&tiles, 4u * at, true, 4u * PITCH);
}

fn add_products(sums: Sums, tokens: Tokens, rows: Rows) -> Sums {
    return subgroupMatrixMultiplyAccumulate(tokens, rows, sums);
}

fn store_sums(at: u32, sums: Sums) {
    subgroupMatrixStore(&tiles, at, sums, false, TILE_ROWS);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    multiply(group, lane, subgroup);
}
