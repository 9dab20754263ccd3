// Products of packed codes with int8 activations that have a scale for each 32: see packed.wgsl and
// quantize_groups.wgsl. Kernels of one token and of several give the same bits, so every operation
// that could be fused with another is explicit.

fn dot16(codes: vec4u, q: vec4u) -> i32 {
    return dot4(codes.x, q.x) + dot4(codes.y, q.y) + dot4(codes.z, q.z) + dot4(codes.w, q.w);
}

// Adds the products of 32 values. `first` and `second` are the integer products of each sixteen,
// `s` and `s2` their scales and offsets, which differ only in groups of 16; `x` is the scale of the
// activations, and the scale times their sum.
fn add_group(sum: f32, s: vec2f, s2: vec2f, x: vec2f, first: i32, second: i32) -> f32 {
    if GROUP == 16u {
        return fma(s2.x * x.x, f32(second), fma(s.x * x.x, f32(first), sum));
    }
    let v = fma(s.x, fma(x.x, f32(first + second), -CODE_OF_ZERO * x.y), sum);
    if OFFSETS {
        return fma(-s.y, x.y, v);
    }
    return v;
}

// Adds the products of 64 values with one scale `s`: `x` is of the first 32, `x2` of the others.
fn add_two_groups(sum: f32, s: f32, x: vec2f, x2: vec2f, first: i32, second: i32) -> f32 {
    let v = fma(x.x, f32(first), -CODE_OF_ZERO * x.y);
    return fma(s, fma(x2.x, f32(second), fma(-CODE_OF_ZERO, x2.y, v)), sum);
}

// Codes of 8 bits are signed, so that groups of 16 need no sum of the activations.
const_assert GROUP != 16u || BITS == 8u;
