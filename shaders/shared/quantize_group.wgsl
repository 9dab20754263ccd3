// int8 activations with a scale for every 32: q = round(x / scale), scale = max|x| / 127.

fn largest_of(v: vec4f) -> f32 {
    let a = abs(v);
    return max(max(a.x, a.y), max(a.z, a.w));
}

fn square_of(v: vec4f) -> f32 {
    return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, v.x * v.x)));
}

// The factor that makes int8 of the values of a group. If they are so small that it would be
// infinite, they count as zeros.
fn per_scale(largest: f32) -> f32 {
    return select(0.0, 127.0 / largest, largest > 1e-30);
}

// See quantize.wgsl.
const ROUNDER: f32 = 12582912.0;
const ROUNDER_BITS: i32 = 0x4b400000;

fn rounded(x: vec4f, per: f32) -> vec4i {
    return bitcast<vec4i>(clamp(x * per, vec4f(-127.0), vec4f(127.0)) + ROUNDER) - vec4i(ROUNDER_BITS);
}

fn packed_bytes(v: vec4i) -> u32 {
    let bytes = v & vec4i(255);
    return u32(bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u));
}
