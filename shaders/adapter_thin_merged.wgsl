// The first matrices of an adapter's pairs, times the outputs of attention, normed or as they are. Every
// workgroup merges the splits of attention for itself: see merged.wgsl and adapter_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> a: array<vec2u>;      // [ROWS, K] f16
@group(0) @binding(2) var<storage, read> factor: array<vec4f>; // [ROWS / 4]
// [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(3) var<storage, read> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]
@group(0) @binding(4) var<storage, read> partial_max_total: array<vec2f>;
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(6) var<storage, read_write> u: array<vec4f>;     // [n_tokens, ROWS / 4]

fn input_four(token: u32, i: u32) -> vec4f {
    return merged(token, i);
}
