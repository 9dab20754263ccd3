// Packed rows times int8 activations with a scale for every 32: see packed.wgsl, packed_rows.wgsl
// and quantize_groups.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
// [n_tokens, Q_VECTORS] int8, see groups.wgsl
@group(0) @binding(3) var<storage, read> q: array<vec4u>;
// [n_tokens, Q_SCALES]: scale, and scale times the sum of q
@group(0) @binding(4) var<storage, read> q_scale: array<vec2f>;
@group(0) @binding(5) var<storage, read> q_factor: array<f32>; // [n_tokens]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn input_factor(token: u32) -> f32 {
    return q_factor[token];
}

// The activations 64 i to 64 i + 63 of a row.
fn sixty4(token: u32, i: u32) -> Sixty4 {
    let at = token * Q_VECTORS + sixteen_at(i * 4u);
    let at_x = token * Q_SCALES + i * 2u;
    return Sixty4(q[at], q[at + 8u], q[at + 16u], q[at + 24u], q_scale[at_x], q_scale[at_x + 1u]);
}

fn add_unit(sum: f32, token: u32, row: u32, unit: u32, a: vec4u, b: vec4u) -> f32 {
    if BITS == 1u {
        let s = scale_offset(row, unit * UNIT).x;
        return add_bits(sum, s, a, sixty4(token, 2u * unit), sixty4(token, 2u * unit + 1u));
    }
    if BITS == 2u {
        let s = scale_offset(row, unit * UNIT).x;
        return add_sixty4(sum, s, a, sixty4(token, unit));
    }
    var v = sum;
    for (var group = 0u; group < UNIT / 32u; group++) {
        let at = unit * UNIT + group * 32u;
        let at_q = token * Q_VECTORS + sixteen_at(at / 16u);
        let x = q_scale[token * Q_SCALES + at / 32u];
        let first = dot16(sixteen(a, b, 2u * group), q[at_q]);
        let second = dot16(sixteen(a, b, 2u * group + 1u), q[at_q + 8u]);
        v = add_group(v, scale_offset(row, at), scale_offset(row, at + 16u), x, first, second);
    }
    return v;
}
