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

fn add_unit(sum: f32, token: u32, row: u32, unit: u32, a: vec4u, b: vec4u) -> f32 {
    if BITS == 2u {
        let at_q = token * (K / 16u) + unit * 4u;
        let at_x = token * (K / 32u) + unit * 2u;
        let first = dot16(codes2(a.x), q[at_q]) + dot16(codes2(a.y), q[at_q + 1u]);
        let second = dot16(codes2(a.z), q[at_q + 2u]) + dot16(codes2(a.w), q[at_q + 3u]);
        let s = scale_offset(row, unit * UNIT).x;
        return add_two_groups(sum, s, q_scale[at_x], q_scale[at_x + 1u], first, second);
    }
    var v = sum;
    for (var group = 0u; group < UNIT / 32u; group++) {
        let at = unit * UNIT + group * 32u;
        let at_q = (token * K + at) / 16u;
        let x = q_scale[(token * K + at) / 32u];
        let first = dot16(sixteen(a, b, 2u * group), q[at_q]);
        let second = dot16(sixteen(a, b, 2u * group + 1u), q[at_q + 1u]);
        v = add_group(v, scale_offset(row, at), scale_offset(row, at + 16u), x, first, second);
    }
    return v;
}
