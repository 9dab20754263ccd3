// Prologue: the input is given as int8 values with a scale for each 32, in the order of groups.wgsl.

@group(0) @binding(PROLOGUE_AT) var<storage, read> q: array<vec4u>;            // [Q_VECTORS]
@group(0) @binding(PROLOGUE_AT + 1u) var<storage, read> q_scale: array<vec4f>; // [SIXTY_FOURS]

fn prepare_input(lane: u32) -> f32 {
    stage_input(lane);
    workgroupBarrier();
    return 1.0;
}

fn input_vector(i: u32) -> vec4u {
    return q[i];
}

// The scales of the two groups of 64 values.
fn input_scales(i: u32) -> vec4f {
    return q_scale[i];
}
