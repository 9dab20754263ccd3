// Products of packed codes with int8 activations that have a scale for every 32: see packed.wgsl
// and quantize_groups.wgsl. Kernels of one token and of several give the same bits, so every
// operation that a compiler could fuse with another is explicit.

fn dot16(codes: vec4u, q: vec4u) -> i32 {
    return dot4(codes.x, q.x) + dot4(codes.y, q.y) + dot4(codes.z, q.z) + dot4(codes.w, q.w);
}

// Adds the products of 32 values. `first` and `second` are the integer products of 16 values each.
// `s` and `s2` are their scales and offsets, which differ only in groups of 16. `x` has the scale
// of the activations, and the scale times their sum.
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

// 64 activations. `x` belongs to the first 32 and `x2` to the others.
struct Sixty4 {
    q0: vec4u,
    q1: vec4u,
    q2: vec4u,
    q3: vec4u,
    x: vec2f,
    x2: vec2f,
}

// The products of a word of codes of 1 bit. The word is shifted only once, for its upper half.
// Otherwise bits stay where they are and count 1, 2, 4 and 8 times. A code is twice its bit.
fn dot_bits(word: u32, q0: vec4u, q1: vec4u) -> i32 {
    let upper = word >> 4u;
    let once = dot4(word & 0x01010101u, q0.x) + dot4(upper & 0x01010101u, q1.x);
    let twice = dot4(word & 0x02020202u, q0.y) + dot4(upper & 0x02020202u, q1.y);
    let four_times = dot4(word & 0x04040404u, q0.z) + dot4(upper & 0x04040404u, q1.z);
    let eight_times = dot4(word & 0x08080808u, q0.w) + dot4(upper & 0x08080808u, q1.w);
    return 2 * once + twice + (four_times >> 1u) + (eight_times >> 2u);
}

// The products of 32 codes, which are two words of 2 bits or one word of 1 bit. Of codes of 2 bits,
// only those at the top are shifted down. The others stay where they are and count 4 and 16 times.
fn dot_words(words: vec2u, q0: vec4u, q1: vec4u) -> i32 {
    if BITS == 1u {
        return dot_bits(words.x, q0, q1);
    }
    let once = words & vec2u(0x03030303u);
    let four_times = words & vec2u(0x0c0c0c0cu);
    let sixteen_times = words & vec2u(0x30303030u);
    let top = (words >> vec2u(6u)) & vec2u(0x03030303u);
    return dot4(once.x, q0.x) + dot4(once.y, q1.x) + dot4(top.x, q0.w) + dot4(top.y, q1.w)
        + ((dot4(four_times.x, q0.y) + dot4(four_times.y, q1.y)) >> 2u)
        + ((dot4(sixteen_times.x, q0.z) + dot4(sixteen_times.y, q1.z)) >> 4u);
}

// Adds the products of 64 codes with one scale `s`. `codes` has four words of 2-bit codes; or two
// words of 1-bit codes, each of them twice.
fn add_sixty4(sum: f32, s: f32, codes: vec4u, a: Sixty4) -> f32 {
    let first = dot_words(codes.xy, a.q0, a.q1);
    let second = dot_words(codes.zw, a.q2, a.q3);
    let v = fma(a.x.x, f32(first), -CODE_OF_ZERO * a.x.y);
    return fma(s, fma(a.x2.x, f32(second), fma(-CODE_OF_ZERO, a.x2.y, v)), sum);
}

// Adds the products of 128 codes of 1 bit with one scale `s`.
fn add_bits(sum: f32, s: f32, codes: vec4u, a: Sixty4, b: Sixty4) -> f32 {
    return add_sixty4(add_sixty4(sum, s, codes.xxyy, a), s, codes.zzww, b);
}

// Groups of 16 have codes of 8 bits. These are signed, so no sum of the activations is needed.
const_assert GROUP != 16u || BITS == 8u;
const_assert BITS > 2u || GROUP % UNIT == 0u;
