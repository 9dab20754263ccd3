// The order of the int8 input of packed_slots.wgsl in workgroup memory: neighbouring lanes read
// neighbours. With codes of 2 bits it is the order of groups.wgsl.
//
// With codes of 1 bit a lane takes 128 values in one step. So the copy has blocks of 1024 values, as
// [8][8] vectors. A lane takes two entries of the scales: all first ones come before all second ones.

const COPIED_VECTORS: u32 = select(Q_VECTORS, (Q_VECTORS + 63u) / 64u * 64u, BITS == 1u);

// Where the copy has the vector `i` of the input. See sixteen_at: a block there is [4][8].
fn copied_vector(i: u32) -> u32 {
    if BITS != 1u {
        return i;
    }
    let of_block = i % 32u;
    let row = of_block % 2u * 4u + of_block / 8u;
    return i / 64u * 64u + row * 8u + i / 32u % 2u * 4u + of_block % 8u / 2u;
}

// Where the copy has the scales number `i` of the row.
fn copied_scales(i: u32) -> u32 {
    if BITS != 1u {
        return i;
    }
    return i % 2u * UNITS + i / 2u;
}
