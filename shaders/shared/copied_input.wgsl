// Where workgroup memory has the int8 input of packed_slots.wgsl, so that neighbouring lanes read
// neighbours. With codes of 2 bits that is the order of groups.wgsl.
//
// With codes of 1 bit a lane takes 128 values in one step. So the copy has blocks of 1024 values, as
// [8][8] vectors; and of each two scales the first ones come before the second ones.

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

// Where it has the row's scales number `i`.
fn copied_scales(i: u32) -> u32 {
    if BITS != 1u {
        return i;
    }
    return i % 2u * UNITS + i / 2u;
}
