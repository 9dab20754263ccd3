// Quantises groups of 32 values to int8, by eight neighbouring lanes with four values each. See
// quantize_group.wgsl. The shader includes eights_subgroup.wgsl or eights_workgroup.wgsl.

struct Quantized {
    word: u32,  // the lane's four values
    scale: f32, // of the lane's group
    scaled_sum: f32, // the scale times the sum of the group's int8 values
}

// The whole workgroup calls this. Each lane gives its four values.
fn quantized_four(lane: u32, v: vec4f) -> Quantized {
    let largest = eight_max_f32(lane, largest_of(v));
    let codes = rounded(v, per_scale(largest));
    let sum = eight_sum_i32(lane, codes.x + codes.y + codes.z + codes.w);
    let scale = largest / 127.0;
    return Quantized(packed_bytes(codes), scale, scale * f32(sum));
}
