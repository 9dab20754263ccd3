// The input of packed_slots.wgsl is the norm of the residual stream. What added to the stream has
// made the codes, see stream_rows.wgsl. The norm itself is only a factor.
//
// The kernel declares q_scale, `array<vec2f>` [2][K / 32]: scale and scale times the sum of q, then
// the sum of the squares of the stream, and nothing.

const GROUPS: u32 = K / 32u;
const GROUPS_EACH: u32 = (GROUPS + WORKGROUP - 1u) / WORKGROUP; // of a lane

fn prepare_input(lane: u32) -> f32 {
    var squares = 0.0;
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * WORKGROUP + lane;
        if group < GROUPS {
            squares += q_scale[GROUPS + group].x;
        }
    }
    return inverseSqrt(group_sum_max(lane, vec2f(squares, 0.0)).x / f32(K) + EPS);
}
