// Products of int8 matrices on the adapter's matrix units: 16 tokens x 32 values by 32 values x 16
// rows. The sums are exact, in i32. The lanes of a subgroup hold a matrix together.
//
// Chromium checks where a matrix begins, unless its offset is a constant. The check made the kernel
// six times slower on an NVIDIA H200. So each subgroup has arrays of its own and loads from
// constant offsets, and loops are written out. The constants count int8 values.

alias Tokens = subgroup_matrix_left<i8, 32, 16>;
alias Rows = subgroup_matrix_right<i8, 16, 32>;
alias Sums = subgroup_matrix_result<i32, 16, 16>;
alias TileSums = array<Sums, 8>; // [4][2]: tokens, rows

const BLOCK: u32 = 8u;
const LINE: u32 = 4u * PITCH; // distance from one row, or token, to the next
const NEXT: u32 = 16u * LINE; // distance from one matrix to the next

// The part of the tile that a subgroup computes.
fn part_of(lane: u32, subgroup: u32) -> u32 {
    return subgroup;
}

fn add_products(
    sums: ptr<function, TileSums>,
    t0: Tokens,
    t1: Tokens,
    t2: Tokens,
    t3: Tokens,
    r0: Rows,
    r1: Rows,
) {
    (*sums)[0] = subgroupMatrixMultiplyAccumulate(t0, r0, (*sums)[0]);
    (*sums)[1] = subgroupMatrixMultiplyAccumulate(t0, r1, (*sums)[1]);
    (*sums)[2] = subgroupMatrixMultiplyAccumulate(t1, r0, (*sums)[2]);
    (*sums)[3] = subgroupMatrixMultiplyAccumulate(t1, r1, (*sums)[3]);
    (*sums)[4] = subgroupMatrixMultiplyAccumulate(t2, r0, (*sums)[4]);
    (*sums)[5] = subgroupMatrixMultiplyAccumulate(t2, r1, (*sums)[5]);
    (*sums)[6] = subgroupMatrixMultiplyAccumulate(t3, r0, (*sums)[6]);
    (*sums)[7] = subgroupMatrixMultiplyAccumulate(t3, r1, (*sums)[7]);
}

// Adds the products of a block. It takes 32 values at a time.
fn add_block(sums: ptr<function, TileSums>, down: u32, across: u32) {
    add_products(
        sums,
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 0u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], NEXT, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 2u * NEXT, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 3u * NEXT, false, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], 0u, true, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], NEXT, true, LINE),
    );
    add_products(
        sums,
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 32u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], NEXT + 32u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 2u * NEXT + 32u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 3u * NEXT + 32u, false, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], 32u, true, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], NEXT + 32u, true, LINE),
    );
    add_products(
        sums,
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 64u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], NEXT + 64u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 2u * NEXT + 64u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 3u * NEXT + 64u, false, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], 64u, true, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], NEXT + 64u, true, LINE),
    );
    add_products(
        sums,
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 96u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], NEXT + 96u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 2u * NEXT + 96u, false, LINE),
        subgroupMatrixLoad<Tokens>(&q_tiles[down], 3u * NEXT + 96u, false, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], 96u, true, LINE),
        subgroupMatrixLoad<Rows>(&w_tiles[across], NEXT + 96u, true, LINE),
    );
}

// Stores sums in q_tiles, from column `at` on.
fn store_sums(sums: Sums, down: u32, at: u32) {
    subgroupMatrixStore(&q_tiles[down], at, sums, false, SUMS_PITCH);
}
