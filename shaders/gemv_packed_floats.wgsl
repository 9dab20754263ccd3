// Packed rows times activations as floats: see packed.wgsl and packed_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4f>; // [n_tokens, K]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn input_factor(token: u32) -> f32 {
    return 1.0;
}

fn add_products(sum: f32, a: vec4f, b: vec4f) -> f32 {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

fn add_unit(sum: f32, token: u32, row: u32, unit: u32, a: vec4u, b: vec4u) -> f32 {
    var v = sum;
    for (var i = 0u; i < SIXTEENS; i++) {
        let at = unit * UNIT + 16u * i;
        let at_x = (token * K + at) / 4u;
        let codes = sixteen(a, b, i);
        let s = scale_offset(row, at);
        v = add_products(v, values(codes.x, s), x[at_x]);
        v = add_products(v, values(codes.y, s), x[at_x + 1u]);
        v = add_products(v, values(codes.z, s), x[at_x + 2u]);
        v = add_products(v, values(codes.w, s), x[at_x + 3u]);
    }
    return v;
}
