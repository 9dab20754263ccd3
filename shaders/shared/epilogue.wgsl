// From the integer product of codes 0, 1, 2 to the matrix product: y = (D - sum(q)) / s * scale.
// The order of operations is bitnet.cpp's; |D - sum(q)| < 2^24, so the conversion is exact.

fn product(d: i32, q_scale: vec2f, scale: f32) -> f32 {
    return f32(d - i32(q_scale.y)) / q_scale.x * scale;
}

// The gated activation of the feed-forward network: relu(gate)² * up.
fn relu2_glu(gate: f32, up: f32) -> f32 {
    let g = max(gate, 0.0);
    return g * g * up;
}

