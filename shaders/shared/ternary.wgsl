// Products of ternary codes with int8 activations. quantize.wgsl has the order of the activations.

// A word of codes, which are sixteen numbers 0, 1 or 2, times its sixteen activations.
fn dot_word(word: u32, q: vec4u) -> i32 {
    return dot4((word >> 6u) & 0x03030303u, q.x)
        + dot4((word >> 4u) & 0x03030303u, q.y)
        + dot4((word >> 2u) & 0x03030303u, q.z)
        + dot4(word & 0x03030303u, q.w);
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

// The matrix product (D - sum(q)) / s * scale, from the integer product D of codes 0, 1 and 2.
// The order of operations is bitnet.cpp's. |D - sum(q)| < 2^24, so the conversion to f32 is exact.

fn product(d: i32, q_scale: vec2f, scale: f32) -> f32 {
    return f32(d - i32(q_scale.y)) / q_scale.x * scale;
}
