// Products of ternary codes with int8 activations. quantize.wgsl has the order of the activations.

// A word of codes, which are sixteen numbers 0, 1 or 2, times its sixteen activations.
fn dot_word(word: u32, q: vec4u) -> i32 {
    if PACKED_DOT {
        return dot4((word >> 6u) & 0x03030303u, q.x)
            + dot4((word >> 4u) & 0x03030303u, q.y)
            + dot4((word >> 2u) & 0x03030303u, q.z)
            + dot4(word & 0x03030303u, q.w);
    }
    return whole_sum(add_word(vec4f(), word, sixteen_floats(q)));
}

// The sixteen activations of a word of codes, as floats that make up for what code_floats multiplies
// the codes by.
struct Sixteen {
    a: vec4f,
    b: vec4f,
    c: vec4f,
    d: vec4f,
}

fn sixteen_floats(q: vec4u) -> Sixteen {
    return Sixteen(
        int8_floats(q.x, 1.0 / 64.0, 256.0),
        int8_floats(q.y, 1.0 / 16.0, 256.0),
        int8_floats(q.z, 1.0 / 4.0, 256.0),
        int8_floats(q.w, 1.0, 256.0),
    );
}

// Adds the products of a word of codes. All sums are exact: they are below 2^24.
fn add_word(sum: vec4f, word: u32, q: Sixteen) -> vec4f {
    let ab = fma(code_floats(word, 4u), q.b, fma(code_floats(word, 6u), q.a, sum));
    return fma(code_floats(word, 0u), q.d, fma(code_floats(word, 2u), q.c, ab));
}

fn whole_sum(v: vec4f) -> i32 {
    return i32((v.x + v.y) + (v.z + v.w));
}

// Four codes of each of four rows times the same four activations.
fn dot_rows(codes: vec4u, q: u32) -> vec4i {
    return vec4i(dot4(codes.x, q), dot4(codes.y, q), dot4(codes.z, q), dot4(codes.w, q));
}

// The same for an unpacked word of codes of each row. Each product is added to the sum separately,
// because cards multiply and add in one operation.
fn add_rows(sum: vec4i, c0: vec4u, c1: vec4u, c2: vec4u, c3: vec4u, q: vec4u) -> vec4i {
    return sum + dot_rows(c0, q.x) + dot_rows(c1, q.y) + dot_rows(c2, q.z) + dot_rows(c3, q.w);
}
