// Prologue: every workgroup merges the splits of attention, see merged.wgsl, and quantises them, see
// quantize_eights.wgsl.

// [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(PROLOGUE_AT) var<storage, read> partial_sums: array<vec4f>;
// [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(PROLOGUE_AT + 1u) var<storage, read> partial_max_total: array<vec2f>;

const FOURS: u32 = K / 4u;
const FOURS_EACH: u32 = (FOURS + WORKGROUP - 1u) / WORKGROUP; // of a lane

// See copied_vector.
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
