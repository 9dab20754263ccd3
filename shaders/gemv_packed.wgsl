// Packed rows times int8 activations with a scale for each 32: see packed.wgsl, packed_rows.wgsl
// and quantize_groups.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
// [n_tokens, K] int8 in their order
@group(0) @binding(3) var<storage, read> q: array<vec4u>;
// [n_tokens, K / 32]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

fn dot16(codes: vec4u, q: vec4u) -> i32 {
    return dot4(codes.x, q.x) + dot4(codes.y, q.y) + dot4(codes.z, q.z) + dot4(codes.w, q.w);
}

fn add_unit(sum: f32, token: u32, row: u32, unit: u32, a: vec4u, b: vec4u) -> f32 {
    var v = sum;
    for (var group = 0u; group < UNIT / 32u; group++) {
        let at = unit * UNIT + group * 32u;
        let at_q = (token * K + at) / 16u;
        let x = q_scale[(token * K + at) / 32u];
        let first = dot16(sixteen(a, b, 2u * group), q[at_q]);
        let second = dot16(sixteen(a, b, 2u * group + 1u), q[at_q + 1u]);
        if GROUP == 16u {
            v = fma(scale_offset(row, at).x * x.x, f32(first), v);
            v = fma(scale_offset(row, at + 16u).x * x.x, f32(second), v);
        } else {
            let s = scale_offset(row, at);
            v = fma(s.x, fma(x.x, f32(first + second), -CODE_OF_ZERO * x.y), v);
            if OFFSETS {
                v = fma(-s.y, x.y, v);
            }
        }
    }
    return v;
}

// Codes of 8 bits have groups of 16 only with a zero of their own.
const_assert GROUP != 16u || BITS == 8u;
