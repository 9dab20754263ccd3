// f16 values, each split into two bytes. The upper byte holds the sign, the four lower bits of the
// exponent and three bits of the mantissa. The lower byte holds the exponent's top bit, which is
// set only in values of 2 and more, and the other seven bits of the mantissa.
//
// A word holds the bytes of four values in the order 0, 2, 1, 3. So the bytes of two neighbours are
// 16 bits apart, as in a pair of f16, and one shift moves both.

fn upper_bytes(halves: vec2u) -> u32 {
    let bytes =
        ((halves >> vec2u(8u)) & vec2u(0x00800080u)) | ((halves >> vec2u(7u)) & vec2u(0x007f007fu));
    return bytes.x | (bytes.y << 8u);
}

fn lower_bytes(halves: vec2u) -> u32 {
    let bytes = ((halves >> vec2u(7u)) & vec2u(0x00800080u)) | (halves & vec2u(0x007f007fu));
    return bytes.x | (bytes.y << 8u);
}

// The bits of the upper bytes of four values, moved to their positions in an f16.
fn middle_bits(upper: u32) -> vec2u {
    let bytes = vec2u(upper, upper >> 8u);
    return ((bytes << vec2u(8u)) & vec2u(0x80008000u))
        | ((bytes << vec2u(7u)) & vec2u(0x3f803f80u));
}

// Four f16 values, as before the split: two in each word.
fn joined(upper: u32, lower: u32) -> vec2u {
    let bytes = vec2u(lower, lower >> 8u);
    return middle_bits(upper)
        | ((bytes << vec2u(7u)) & vec2u(0x40004000u))
        | (bytes & vec2u(0x007f007fu));
}

// Four values from their upper bytes alone: each is the middle of the possible values below 2.
fn approximate(upper: u32) -> vec4f {
    let halves = middle_bits(upper) | vec2u(0x00400040u);
    return vec4f(unpack2x16float(halves.x), unpack2x16float(halves.y));
}

