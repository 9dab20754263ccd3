// Packed rows of 2-bit codes times one vector. Every workgroup norms and quantises the vector for
// itself: see normed_groups.wgsl. If a workgroup has many rows, this is cheaper than another
// dispatch.
//
// The kernel declares what packed.wgsl and normed_groups.wgsl need, but not put. A slot of LANES
// neighbouring lanes shares two rows.

const_assert BITS == 2u && GROUP >= 64u && EACH == 2u;

// The activations of each unit, [STEPS][4][LANES], so that neighbouring lanes read neighbours.
var<workgroup> q: array<vec4u, STEPS * 4u * LANES>;
var<workgroup> q_scale: array<vec2f, STEPS * 2u * LANES>;

fn put(token: u32, group: u32, first: vec4u, second: vec4u, s: vec2f) {
    let unit = group / 2u;
    let at = (unit / LANES * 4u + group % 2u * 2u) * LANES + unit % LANES;
    q[at] = first;
    q[at + LANES] = second;
    q_scale[(unit / LANES * 2u + group % 2u) * LANES + unit % LANES] = s;
}

fn add_unit(sum: f32, codes: vec4u, s: f32, at_step: u32, lane: u32) -> f32 {
    let at = at_step * 4u * LANES + lane % LANES;
    let at_x = at_step * 2u * LANES + lane % LANES;
    let first = dot16(codes2(codes.x), q[at]) + dot16(codes2(codes.y), q[at + LANES]);
    let second =
        dot16(codes2(codes.z), q[at + 2u * LANES]) + dot16(codes2(codes.w), q[at + 3u * LANES]);
    return add_two_groups(sum, s, q_scale[at_x], q_scale[at_x + LANES], first, second);
}

// The products of the normed vector with two rows of the shard. Every lane of the slot gets them.
fn products(lane: u32, rows: vec2u) -> vec2f {
    var codes0: array<vec4u, STEPS>;
    var codes1: array<vec4u, STEPS>;
    var scales: array<vec2f, STEPS>;
    // Loaded first: the norm is computed while the codes are on their way.
    for (var i = 0u; i < STEPS; i++) {
        let unit = min(i * LANES + lane % LANES, UNITS - 1u);
        codes0[i] = w[rows.x * UNITS + unit];
        codes1[i] = w[rows.y * UNITS + unit];
        scales[i] =
            vec2f(scale_offset(rows.x, unit * UNIT).x, scale_offset(rows.y, unit * UNIT).x);
    }
    norm_groups(0u, lane);
    workgroupBarrier();
    var sum = vec2f();
    for (var i = 0u; i < STEPS; i++) {
        if UNITS % LANES == 0u || i * LANES + lane % LANES < UNITS {
            sum.x = add_unit(sum.x, codes0[i], scales[i].x, i, lane);
            sum.y = add_unit(sum.y, codes1[i], scales[i].y, i, lane);
        }
    }
    return lanes_sum_vec2f(lane, sum);
}
