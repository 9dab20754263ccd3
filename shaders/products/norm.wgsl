// Prologue: the input is the norm of the residual stream. The product that last added to the stream has
// made the codes, see stream.wgsl. The norm itself is only a factor.

// q in the order of groups.wgsl; for each two groups their scales, and the scales times the sum of q; then
// for each group the sum of the squares of the stream.
@group(0) @binding(PROLOGUE_AT) var<storage, read> stream: array<vec4u>;

const SCALES_AT: u32 = Q_VECTORS;
const SQUARES_AT: u32 = SCALES_AT + K / 64u;
const GROUPS: u32 = K / 32u;
const GROUPS_EACH: u32 = (GROUPS + SUM_LANES - 1u) / SUM_LANES; // of a lane

fn prepare_input(lane: u32) -> f32 {
    stage_input(lane);
    var squares = 0.0;
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * SUM_LANES + lane;
        if lane < SUM_LANES && group < GROUPS {
            squares += bitcast<f32>(stream[SQUARES_AT + group / 4u][group % 4u]);
        }
    }
    return inverseSqrt(group_sum_f32(lane, squares) / f32(K) + EPS);
}

fn input_vector(i: u32) -> vec4u {
    return stream[i];
}

// The scales of the two groups of 64 values.
fn input_scales(i: u32) -> vec4f {
    return bitcast<vec4f>(stream[SCALES_AT + i]);
}
