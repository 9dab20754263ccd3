// The dot product of four int8 values with four others. With PACKED_DOT it is one operation.
// Otherwise it uses floats, which hold these sums exactly. Loading a model measures which is
// faster.
fn dot4(a: u32, b: u32) -> i32 {
    if PACKED_DOT {
        return dot4I8Packed(a, b);
    }
    return i32(dot(vec4f(unpack4xI8(a)), vec4f(unpack4xI8(b))));
}
