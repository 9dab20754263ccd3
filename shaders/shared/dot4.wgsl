// Products of four int8 values with four others. With PACKED_DOT they are one operation. Otherwise
// they use floats, which hold these sums exactly; ternary.wgsl has a better way for its codes. A
// load measures which way is faster.
//
// Cards convert integers to floats at a quarter of the rate of other operations, or less. Setting
// bits is faster: an integer in the lowest bits of the mantissa of 2^23 makes the float 2^23 plus
// the integer.

const MAGIC: u32 = 0x4b000000u; // the bits of 2^23

// Four int8 values.
fn int8_floats(q: u32) -> vec4f {
    let u = q ^ 0x80808080u; // each value plus 128
    let bits = vec4u(u, u, u >> 16u, u >> 16u) & vec4u(0xffu, 0xff00u, 0xffu, 0xff00u);
    let low = vec2f(1.0, 1.0 / 256.0);
    let zero = vec2f(8388736.0, 8421376.0); // 2^23 + 128, and 2^23 + 128 * 256
    return fma(bitcast<vec4f>(bits | vec4u(MAGIC)), low.xyxy, -(zero * low).xyxy);
}

fn dot4(a: u32, b: u32) -> i32 {
    if PACKED_DOT {
        return dot4I8Packed(a, b);
    }
    return i32(dot(int8_floats(a), int8_floats(b)));
}
