// Adds the product with the outputs of attention to the residual stream, see stream_rows.wgsl. Every
// workgroup merges the splits, see merged.wgsl, and quantises them, see quantize_eights.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
// [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(3) var<storage, read> partial_sums: array<vec4f>;
// [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(4) var<storage, read> partial_max_total: array<vec2f>;
@group(0) @binding(5) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(6) var<storage, read_write> x: array<f32>;
@group(0) @binding(7) var<storage, read_write> stream: array<u32>;

const FOURS: u32 = K / 4u;
const FOURS_EACH: u32 = (FOURS + WORKGROUP - 1u) / WORKGROUP; // of a lane

// See copied_input.wgsl.
var<workgroup> q: array<vec4u, COPIED_VECTORS>;
var<workgroup> q_scale: array<vec2f, K / 32u>;

fn prepare_input(lane: u32) -> f32 {
    var v: array<vec4f, FOURS_EACH>;
    for (var n = 0u; n < FOURS_EACH; n++) {
        v[n] = merged(0u, min(n * WORKGROUP + lane, FOURS - 1u));
    }
    for (var n = 0u; n < FOURS_EACH; n++) {
        let quantized = quantized_four(lane, v[n]);
        let words = words_of_four(lane, quantized.word);
        let i = n * WORKGROUP + lane;
        if i < FOURS && i % 4u == 0u {
            q[copied_vector(sixteen_at(i / 4u))] = words;
        }
        if i < FOURS && i % 8u == 0u {
            q_scale[i / 8u] = vec2f(quantized.scale, quantized.scaled_sum);
        }
    }
    workgroupBarrier();
    return 1.0;
}

fn sixty4(i: u32) -> Sixty4 {
    let first = copied_vector(sixteen_at(i * 4u));
    return Sixty4(
        q[first],
        q[first + 8u],
        q[first + 16u],
        q[first + 24u],
        q_scale[i * 2u],
        q_scale[i * 2u + 1u],
    );
}
