// Rows of codes of BITS bits with a scale for each GROUP of values: scale * (code - ZERO) - offset.
//
// The kernel declares w, `array<vec4u>` [MATRICES, N_ROWS, K] codes, and w_scale, `array<u32>`
// [MATRICES, N_ROWS, SCALE_WORDS]. If SCALE_F16, w_scale has f16 in pairs. If OFFSETS, it has f32,
// each followed by its offset. Otherwise it has F16_WORDS of f16 in pairs, each for GROUPS_OF_F16
// groups, and then an int8 for each group, which multiplies the f16 of the group. A word of codes
// holds fours of consecutive values. A four has one code in each byte: the first four in the lowest
// bits of the bytes, the next one in the bits above. A code of 1 bit is 0 or 2.

const UNIT: u32 = select(32u, 128u / BITS, BITS <= 2u); // values that a lane reads in one step
const UNITS: u32 = K / UNIT;                            // units in a row
const VECTORS: u32 = UNIT * BITS / 128u;                // vectors of codes in a unit: 1 or 2
const STEPS: u32 = (UNITS + LANES - 1u) / LANES;

const_assert BITS == 1u || BITS == 2u || BITS == 4u || BITS == 8u;
const_assert K % UNIT == 0u;
const_assert GROUP == 16u || GROUP % 32u == 0u;

// Sixteen codes, one in each byte, from the lower or the upper `half` of the bits of a word's
// bytes.
fn codes1(word: u32, half: u32) -> vec4u {
    let bits = (vec4u(word) >> (vec4u(0u, 1u, 2u, 3u) + 4u * half)) & vec4u(0x01010101u);
    return bits << vec4u(1u);
}

// Sixteen codes, one in each byte.
fn codes2(word: u32) -> vec4u {
    return (vec4u(word) >> vec4u(0u, 2u, 4u, 6u)) & vec4u(0x03030303u);
}

fn codes4(words: vec2u) -> vec4u {
    return (words.xxyy >> vec4u(0u, 4u, 0u, 4u)) & vec4u(0x0f0f0f0fu);
}

// The codes 16 i to 16 i + 15 of a unit. Codes of 8 bits are made signed, because their ZERO is
// 128.
fn sixteen(first: vec4u, second: vec4u, i: u32) -> vec4u {
    if BITS == 1u {
        return codes1(first[i / 2u], i % 2u);
    }
    if BITS == 2u {
        return codes2(first[i]);
    }
    if BITS == 4u {
        return codes4(select(first.xy, first.zw, i == 1u));
    }
    return select(first, second, i == 1u) ^ vec4u(0x80808080u);
}

const SIXTEENS: u32 = UNIT / 16u;
const CODE_OF_ZERO: f32 = select(f32(ZERO), 0.0, BITS == 8u);

// The f16 number `i` of a row of scales. It is in this word.
fn f16_in(word: u32, i: u32) -> f32 {
    let pair = unpack2x16float(word);
    return select(pair.x, pair.y, i % 2u == 1u);
}

// The scale and the offset of the value number `at`, from a row of scales.
fn scale_offset(row: u32, at: u32) -> vec2f {
    let first = row * SCALE_WORDS;
    let group = at / GROUP;
    if SCALE_F16 {
        return vec2f(f16_in(w_scale[first + group / 2u], group), 0.0);
    }
    if OFFSETS {
        let at_pair = first + 2u * group;
        return bitcast<vec2f>(vec2u(w_scale[at_pair], w_scale[at_pair + 1u]));
    }
    let i = group / GROUPS_OF_F16;
    let factors = bitcast<i32>(w_scale[first + F16_WORDS + group / 4u]);
    let factor = extractBits(factors, 8u * (group % 4u), 8u);
    return vec2f(f16_in(w_scale[first + i / 2u], i) * f32(factor), 0.0);
}

// The values of four codes.
fn values(codes: u32, s: vec2f) -> vec4f {
    if BITS == 8u {
        return vec4f(unpack4xI8(codes)) * s.x;
    }
    return fma(vec4f(unpack4xU8(codes)) - CODE_OF_ZERO, vec4f(s.x), vec4f(-s.y));
}
