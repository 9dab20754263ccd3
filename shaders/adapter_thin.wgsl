// The first matrices of an adapter's pairs, times the norm of rows of floats, or times the rows as they are.
// See adapter_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> a: array<vec2u>;           // [ROWS, K] f16
@group(0) @binding(2) var<storage, read> factor: array<vec4f>;      // [ROWS / 4]
@group(0) @binding(3) var<storage, read> x: array<vec4f>;           // [n_tokens, K]
@group(0) @binding(4) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(5) var<storage, read_write> u: array<vec4f>;     // [n_tokens, ROWS / 4]

fn input_four(token: u32, i: u32) -> vec4f {
    return x[token * FOURS + i];
}
