// f16 values parted into two bytes each. The upper byte holds the sign, the four lower bits of the
// exponent and three bits of the mantissa; the lower byte the exponent's top bit, which is set in
// values of 2 and more only, and the other seven bits of the mantissa.
//
// A word holds the bytes of four values in the order 0, 2, 1, 3: those of two neighbours are 16 bits
// apart, and move to where f16 has them together.

fn upper_bytes(halves: vec2u) -> u32 {
    let bytes = ((halves >> vec2u(8u)) & vec2u(0x00800080u)) | ((halves >> vec2u(7u)) & vec2u(0x007f007fu));
    return bytes.x | (bytes.y << 8u);
}

fn lower_bytes(halves: vec2u) -> u32 {
    let bytes = ((halves >> vec2u(7u)) & vec2u(0x00800080u)) | (halves & vec2u(0x007f007fu));
    return bytes.x | (bytes.y << 8u);
}

// The sign and the middle bits of four values, where f16 has them.
fn placed(upper: u32) -> vec2u {
    let bytes = vec2u(upper, upper >> 8u);
    return ((bytes << vec2u(8u)) & vec2u(0x80008000u)) | ((bytes << vec2u(7u)) & vec2u(0x3f803f80u));
}

// Four values as they were: two in each word.
fn joined(upper: u32, lower: u32) -> vec2u {
    let bytes = vec2u(lower, lower >> 8u);
    return placed(upper) | ((bytes << vec2u(7u)) & vec2u(0x40004000u)) | (bytes & vec2u(0x007f007fu));
}

// Four values as far as their upper bytes say: in the middle of what is possible below 2.
fn approximate(upper: u32) -> vec4f {
    let halves = placed(upper) | vec2u(0x00400040u);
    return vec4f(unpack2x16float(halves.x), unpack2x16float(halves.y));
}

