// Four values at a time, from a cache that is read in pairs of words. See kv_row.wgsl. `position`
// counts from the beginning of the buffers.

fn pair_of(position: u32, head_kv: u32, four: u32) -> u32 {
    return position * (KV_ROW / 2u) + head_kv * (HEAD_WORDS / 2u) + four * KV_BITS / 16u;
}

fn four_f16(words: vec2u) -> vec4f {
    return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn four_int8(words: vec2u, four: u32) -> vec4f {
    return vec4f(unpack4xI8(words[four % 2u]));
}
