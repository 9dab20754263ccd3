// int8 activations of K values with a scale for each 32.
//
// q is [n_tokens, K] in blocks of 512 values, the last one padded. A lane of a product reads 64
// values, as four vectors of sixteen. Each of these lies beside the same one of the next lane, so
// that lanes read neighbours: a block is [4][8] vectors. The scales are in order, padded to pairs.

const Q_VECTORS: u32 = (K + 511u) / 512u * 32u; // of q in a row
const Q_SCALES: u32 = (K + 63u) / 64u * 2u;     // in a row

// Which vector of q holds the row's sixteen values number `i`.
fn sixteen_at(i: u32) -> u32 {
    return i / 32u * 32u + i % 4u * 8u + i / 4u % 8u;
}

// Which word of q holds the row's four values number `i`.
fn four_at(i: u32) -> u32 {
    return sixteen_at(i / 4u) * 4u + i % 4u;
}
