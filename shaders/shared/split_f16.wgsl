// f16 values, each split into two bytes. The upper byte holds the sign, the four lower bits of the
// exponent and three bits of the mantissa. The lower byte holds the exponent's top bit and the
// other seven bits of the mantissa.
//
// Before that, the exponents of a row are moved: see `moved`. After it the exponent's top bit is
// set only in values that are small for their row, so the upper bytes alone approximate the row.
//
// A word holds the bytes of four values in the order 0, 2, 1, 3. So the bytes of two neighbours are
// 16 bits apart, as in a pair of f16, and one bit shift moves both.

// Masks for a pair of f16.
const ONE_STEP: u32 = 0x04000400u; // 1 in both exponents
const TOP_BITS: u32 = 0x40004000u; // the top bits of both exponents

// All bits of a half are set if the top bit of its exponent is.
fn with_top_bit(halves: vec2u) -> vec2u {
    return ((halves & vec2u(TOP_BITS)) >> vec2u(14u)) * 0xffffu;
}

// The halves of a row whose greatest exponent is `shift + 15`, or less if `shift` is 0. Exponents
// of at least `shift` are lowered by it and become 0 to 15. Exponents below it become 16 and more,
// in reverse order. So the upper byte, which lacks the top bit, shows small values as small too:
// they count as at most 2^-15 of the largest, unless they are far smaller than that.
fn moved(halves: vec2u, shift: u32) -> vec2u {
    return vec2u(moved_pair(halves.x, shift), moved_pair(halves.y, shift));
}

fn moved_pair(halves: u32, shift: u32) -> u32 {
    return moved_half(halves & 0xffffu, shift) | (moved_half(halves >> 16u, shift) << 16u);
}

fn moved_half(half: u32, shift: u32) -> u32 {
    let exponent = (half >> 10u) & 31u;
    let other = select(shift + 15u - exponent, exponent - shift, exponent >= shift);
    return (half & 0x83ffu) | (other << 10u);
}

// The inverse of `moved`.
fn moved_back(halves: vec2u, shift: u32) -> vec2u {
    let small = with_top_bit(halves);
    let raised = halves + (vec2u(shift * ONE_STEP) & ~small);
    let exponents = vec2u((shift + 15u) * ONE_STEP) - (halves & vec2u(31u * ONE_STEP));
    return (raised & ~small) | (((halves & vec2u(0x83ff83ffu)) | exponents) & small);
}

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

// Four f16 values as they were before the split, two in each word.
fn joined(upper: u32, lower: u32, shift: u32) -> vec2u {
    // Few rows have a shift. In the others nothing has to be moved back.
    if shift == 0u {
        return joined_halves(upper, lower);
    }
    return moved_back(joined_halves(upper, lower), shift);
}

// Like `joined`, for a row without a shift.
fn joined_halves(upper: u32, lower: u32) -> vec2u {
    let bytes = vec2u(lower, lower >> 8u);
    return middle_bits(upper)
        | ((bytes << vec2u(7u)) & vec2u(TOP_BITS))
        | (bytes & vec2u(0x007f007fu));
}

// Four values from their upper bytes alone, divided by 2^shift. Each is the middle of the values
// that are possible, if it is not small for its row.
fn approximate(upper: u32) -> vec4f {
    let halves = middle_bits(upper) | vec2u(0x00400040u);
    return vec4f(unpack2x16float(halves.x), unpack2x16float(halves.y));
}

