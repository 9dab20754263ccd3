// Format: rows of packed codes of 1 or 2 bits, see packed.wgsl and groups.wgsl of shaders/shared. A team of
// LANES neighbouring lanes shares EACH rows, so that activations are read once for all of these.
//
// Each prologue declares sixty4(i), which returns the row's 64 activations number `i`; and
// prepare_input(lane), which the whole workgroup calls before, and which returns the factor of all products.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;
@group(0) @binding(1) var<storage, read> w_scale: array<u32>;

const_assert BITS <= 2u && GROUP >= UNIT;
const_assert EACH == 1u || EACH == 2u || EACH == 4u;

// Codes are loaded so many steps ahead: they come from memory, the activations from a cache.
const AHEAD: u32 = min(2u, STEPS);

const SIXTY_FOURS: u32 = K / 64u; // activations of a row, 64 at a time

// The word with the scale of a unit, and the scale. Codes of 1 and 2 bits have scales of f16.
fn scale_word(row: u32, unit: u32) -> u32 {
    return w_scale[row * SCALE_WORDS + unit * UNIT / GROUP / 2u];
}

fn scale_in(word: u32, unit: u32) -> f32 {
    return f16_in(word, unit * UNIT / GROUP);
}

// The codes that a lane reads of a unit of its rows.
struct Codes {
    row0: vec4u,
    row1: vec4u,
    row2: vec4u,
    row3: vec4u,
    scales: vec4u, // words, by row
}

fn load_codes(rows: vec4u, unit: u32) -> Codes {
    var c: Codes;
    c.row0 = w[rows.x * UNITS + unit];
    c.scales.x = scale_word(rows.x, unit);
    if EACH > 1u {
        c.row1 = w[rows.y * UNITS + unit];
        c.scales.y = scale_word(rows.y, unit);
    }
    if EACH > 2u {
        c.row2 = w[rows.z * UNITS + unit];
        c.scales.z = scale_word(rows.z, unit);
        c.row3 = w[rows.w * UNITS + unit];
        c.scales.w = scale_word(rows.w, unit);
    }
    return c;
}

// Adds the products of a unit of 1-bit codes.
fn add_unit_of_bits(sum: vec4f, c: Codes, unit: u32, inside: bool) -> vec4f {
    let a = sixty4(2u * unit);
    let b = sixty4(2u * unit + 1u);
    var v = sum;
    v.x = add_bits(v.x, select(0.0, scale_in(c.scales.x, unit), inside), c.row0, a, b);
    if EACH > 1u {
        v.y = add_bits(v.y, select(0.0, scale_in(c.scales.y, unit), inside), c.row1, a, b);
    }
    if EACH > 2u {
        v.z = add_bits(v.z, select(0.0, scale_in(c.scales.z, unit), inside), c.row2, a, b);
        v.w = add_bits(v.w, select(0.0, scale_in(c.scales.w, unit), inside), c.row3, a, b);
    }
    return v;
}

// Multiplies EACH rows of the weights with the activations. Every lane of a team returns the same sums.
//
// The codes of each step are an element of an array: drivers unroll such a loop. With variables that the
// steps share, an NVIDIA H200 decodes an 8B slower by a tenth. See merged.wgsl.
fn products(lane: u32, rows: vec4u) -> vec4f {
    let last = UNITS - 1u;
    let mine = lane % LANES;
    var codes: array<Codes, STEPS>;
    for (var i = 0u; i < AHEAD; i++) {
        codes[i] = load_codes(rows, min(i * LANES + mine, last));
    }
    let factor = prepare_input(lane);
    var sum = vec4f();
    for (var i = 0u; i < STEPS; i++) {
        if i + AHEAD < STEPS {
            codes[i + AHEAD] = load_codes(rows, min((i + AHEAD) * LANES + mine, last));
        }
        let c = codes[i];
        let unit = min(i * LANES + mine, last);
        // Past the end of a row, a scale of 0 adds nothing.
        let inside = i * LANES + mine < UNITS;
        if BITS == 1u {
            sum = add_unit_of_bits(sum, c, unit, inside);
        } else {
            let a = sixty4(unit);
            sum.x = add_sixty4(sum.x, select(0.0, scale_in(c.scales.x, unit), inside), c.row0, a);
            if EACH > 1u {
                sum.y = add_sixty4(sum.y, select(0.0, scale_in(c.scales.y, unit), inside), c.row1, a);
            }
            if EACH > 2u {
                sum.z = add_sixty4(sum.z, select(0.0, scale_in(c.scales.z, unit), inside), c.row2, a);
                sum.w = add_sixty4(sum.w, select(0.0, scale_in(c.scales.w, unit), inside), c.row3, a);
            }
        }
    }
    if EACH < 4u {
        return vec4f(factor * lanes_sum_vec2f(lane, sum.xy), 0.0, 0.0);
    }
    return factor * lanes_sum_vec4f(lane, sum);
}

// The order in which prologues copy the int8 input to workgroup memory: neighbouring lanes read
// neighbours. With codes of 2 bits it is the order of groups.wgsl.
//
// With codes of 1 bit a lane takes 128 values in one step. So the copy has blocks of 1024 values, as
// [8][8] vectors. A lane takes two entries of the scales: all first ones come before all second ones.

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

// Where the copy has the scales number `i` of the row.
fn copied_scales(i: u32) -> u32 {
    if BITS != 1u {
        return i;
    }
    return i % 2u * UNITS + i / 2u;
}
