// The matrix product (D - sum(q)) / s * scale, from the integer product D of codes 0, 1 and 2.
// The order of operations is bitnet.cpp's. |D - sum(q)| < 2^24, so the conversion to f32 is exact.
fn product(d: i32, q_scale: vec2f, scale: f32) -> f32 {
    return f32(d - i32(q_scale.y)) / q_scale.x * scale;
}
