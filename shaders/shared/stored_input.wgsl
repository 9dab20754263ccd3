// The input of packed_slots.wgsl is in storage buffers: q, `array<vec4u>`, and q_scale,
// `array<vec4f>`, in the order of groups.wgsl.

fn input_vector(i: u32) -> vec4u {
    return q[i];
}

// The scales of the two groups of 64 values.
fn input_scales(i: u32) -> vec4f {
    return q_scale[i];
}
