// Adds the product with the outputs of attention to the residual stream, see stream_rows.wgsl. Every
// workgroup merges the splits, see merged.wgsl, and quantises them, see quantize_group.wgsl.

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
const GROUPS: u32 = K / 32u;
const GROUPS_EACH: u32 = (GROUPS + WORKGROUP - 1u) / WORKGROUP; // of a lane

// Of every four values.
var<workgroup> largest: array<f32, FOURS>;
// The words of int8, [UNITS / 8][UNIT / 4][8] with a pitch of PITCH words for each eight units:
// neighbouring lanes read neighbours, each in a bank of its own.
const PITCH: u32 = 2u * UNIT + 8u;
var<workgroup> q: array<u32, (UNITS + 7u) / 8u * PITCH>;
var<workgroup> q_scale: array<vec2f, GROUPS>;

// The word `i` of the row's 64 values number `which`.
fn word_at(which: u32, i: u32) -> u32 {
    if BITS == 1u {
        return which / 16u * PITCH + (which % 2u * 16u + i) * 8u + which / 2u % 8u;
    }
    return which / 8u * PITCH + i * 8u + which % 8u;
}

fn largest_of_group(group: u32) -> f32 {
    var v = 0.0;
    for (var i = 0u; i < 8u; i++) {
        v = max(v, largest[group * 8u + i]);
    }
    return v;
}

fn prepare_input(lane: u32) -> f32 {
    var v: array<vec4f, FOURS_EACH>;
    for (var n = 0u; n < FOURS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < FOURS {
            v[n] = merged(0u, i);
            largest[i] = largest_of(v[n]);
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < FOURS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < FOURS {
            let per = per_scale(largest_of_group(i / 8u));
            q[word_at(i / 16u, i % 16u)] = packed_bytes(rounded(v[n], per));
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * WORKGROUP + lane;
        if group < GROUPS {
            var sum = 0;
            for (var i = 0u; i < 8u; i++) {
                sum += dot4(0x01010101u, q[word_at(group / 2u, group % 2u * 8u + i)]);
            }
            let scale = largest_of_group(group) / 127.0;
            q_scale[group] = vec2f(scale, scale * f32(sum));
        }
    }
    workgroupBarrier();
    return 1.0;
}

fn four_words(which: u32, i: u32) -> vec4u {
    let at = word_at(which, i);
    return vec4u(q[at], q[at + 8u], q[at + 16u], q[at + 24u]);
}

fn sixty4(i: u32) -> Sixty4 {
    return Sixty4(
        four_words(i, 0u),
        four_words(i, 4u),
        four_words(i, 8u),
        four_words(i, 12u),
        q_scale[i * 2u],
        q_scale[i * 2u + 1u],
    );
}
