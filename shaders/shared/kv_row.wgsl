// The keys, or the values, of all KV heads at one position are a row of KV_ROW words of the cache.
// The row has head after head, with KV_BITS bits for a value. 32 and 16 bits are floats. 8 bits are
// integers, which their head's scale multiplies. The scales are f32, after the last head.

const_assert KV_BITS == 32u || KV_BITS == 16u || KV_BITS == 8u;

const HEAD_WORDS: u32 = HEAD_DIM * KV_BITS / 32u; // words of a head in a row
const FIRST_SCALE: u32 = N_HEAD_KV * HEAD_WORDS;  // the word of a row at which the scales begin
