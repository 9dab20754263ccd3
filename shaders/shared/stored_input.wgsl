// The input of packed_slots.wgsl is in storage buffers: q, `array<vec4u>`, and q_scale,
// `array<vec2f>`, in the order of groups.wgsl.

fn sixty4(unit: u32) -> Sixty4 {
    let at = sixteen_at(unit * 4u);
    return Sixty4(
        q[at],
        q[at + 8u],
        q[at + 16u],
        q[at + 24u],
        q_scale[unit * 2u],
        q_scale[unit * 2u + 1u],
    );
}
