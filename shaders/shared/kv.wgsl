// The KV cache holds f16 or f32, as the constant KV_F16 says; both live in arrays of u32.

const KV_WORDS: u32 = select(4u, 2u, KV_F16); // words that hold 4 values

