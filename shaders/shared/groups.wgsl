// int8 activations of K values with a scale for every 32.
//
// q is [n_tokens, K] in blocks of 512 values. The last block is padded. A lane of a product reads
// 64 values, as four vectors of sixteen. Each vector lies beside the same vector of the next lane,
// so that lanes read neighbours. So a block is [4][8] vectors. The scales are in order, padded to
// pairs.

const Q_VECTORS: u32 = (K + 511u) / 512u * 32u; // vectors of q in a row
const Q_SCALES: u32 = (K + 63u) / 64u * 2u;     // scales in a row

// The index in q of the vector with the values 16 i to 16 i + 15 of a row.
fn sixteen_at(i: u32) -> u32 {
    return i / 32u * 32u + i % 4u * 8u + i / 4u % 8u;
}

// The index in q of the word with the values 4 i to 4 i + 3 of a row.
fn four_at(i: u32) -> u32 {
    return sixteen_at(i / 4u) * 4u + i % 4u;
}
