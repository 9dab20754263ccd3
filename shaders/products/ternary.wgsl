// Format: rows of i2_s codes with a scale each. Every workgroup norms and quantises the input for itself,
// see normed_input.wgsl. If a workgroup has many rows, this is cheaper than another dispatch. A team of
// LANES neighbouring lanes shares EACH rows.
//
// Each prologue declares what normed_input.wgsl needs, but not put.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;     // [MATRICES, N_ROWS, K] codes
@group(0) @binding(1) var<storage, read> w_scale: array<f32>; // [MATRICES, ALL_ROWS]

const FACTOR: f32 = 1.0; // of all products

const VECTORS: u32 = K / 64u; // vectors of four words of codes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES; // to read a row

const_assert EACH == 1u || EACH == 2u;

// Codes are loaded so many steps ahead. All at once is fastest, unless they take too many registers.
const AHEAD: u32 = select(3u, STEPS, STEPS * EACH <= 12u);

const WIDTH: u32 = select(1u, 2u, WIDE && !PACKED_DOT); // vectors of activations for a word of codes

// The activations for each word of codes, [STEPS][4][WIDTH][LANES], so that neighbouring lanes read
// neighbours. Past the end of a row they are multiplied with codes of 0. Without PACKED_DOT they are
// twos if they are WIDE, or else turned.
var<workgroup> q: array<vec4u, STEPS * 4u * WIDTH * LANES>;

fn put(token: u32, word: u32, values: vec4u) {
    let vector = word / 4u;
    let at = (vector / LANES * 4u + word % 4u) * WIDTH * LANES + vector % LANES;
    if PACKED_DOT {
        q[at] = values;
    } else if WIDE {
        let x = twos(turned(values));
        q[at] = bitcast<vec4u>(x.even);
        q[at + LANES] = bitcast<vec4u>(x.odd);
    } else {
        q[at] = turned(values);
    }
}

fn twos_at(at: u32) -> Twos {
    if WIDE {
        return Twos(bitcast<vec4i>(q[at]), bitcast<vec4i>(q[at + LANES]));
    }
    return twos(q[at]);
}

// The codes of `row` that a lane reads in one step.
fn codes(row: u32, at_step: u32, lane: u32) -> vec4u {
    let i = at_step * LANES + lane % LANES;
    if VECTORS % LANES == 0u {
        return w[row * VECTORS + i];
    }
    return select(vec4u(), w[row * VECTORS + min(i, VECTORS - 1u)], i < VECTORS);
}

// The codes of a word's second and third group are not shifted down, so they count 16 and 4 times.
// x is the sum of the first and the last group, y is 4 times the sum of the third, and z is 16
// times the sum of the second.
fn dot_word3(word: u32, q: vec4u) -> vec3i {
    return vec3i(
        dot4((word >> 6u) & 0x03030303u, q.x) + dot4(word & 0x03030303u, q.w),
        dot4(word & 0x0c0c0c0cu, q.z),
        dot4(word & 0x30303030u, q.y),
    );
}

fn dot_codes(words: vec4u, q0: vec4u, q1: vec4u, q2: vec4u, q3: vec4u) -> vec3i {
    return dot_word3(words.x, q0) + dot_word3(words.y, q1)
        + dot_word3(words.z, q2) + dot_word3(words.w, q3);
}

fn whole(d: vec3i) -> i32 {
    return d.x + (d.y >> 2u) + (d.z >> 4u);
}

// The sums of the EACH rows without PACKED_DOT.
struct RowTwos {
    row0: vec2i,
    row1: vec2i,
}

// Adds the products of a word of codes of each row. All rows share the twos.
fn add_row_twos(sums: RowTwos, words: vec2u, q: Twos) -> RowTwos {
    var s = sums;
    s.row0 = add_twos(s.row0, words.x, q);
    if EACH > 1u {
        s.row1 = add_twos(s.row1, words.y, q);
    }
    return s;
}

// The products of four words of codes of each row. The activations of the first are at `at`.
fn dot_twos(codes0: vec4u, codes1: vec4u, at: u32) -> vec2i {
    var s = RowTwos(vec2i(NO_TWOS), vec2i(NO_TWOS));
    s = add_row_twos(s, vec2u(codes0.x, codes1.x), twos_at(at));
    s = add_row_twos(s, vec2u(codes0.y, codes1.y), twos_at(at + WIDTH * LANES));
    s = add_row_twos(s, vec2u(codes0.z, codes1.z), twos_at(at + 2u * WIDTH * LANES));
    s = add_row_twos(s, vec2u(codes0.w, codes1.w), twos_at(at + 3u * WIDTH * LANES));
    return vec2i(whole_twos(s.row0), whole_twos(s.row1));
}

// The scale of a row of the shard.
fn scale_of(row: u32) -> f32 {
    if MATRICES == 2u && row >= N_ROWS {
        return w_scale[ALL_ROWS + FIRST_ROW + row - N_ROWS];
    }
    return w_scale[FIRST_ROW + row];
}

// The products with EACH rows of the shard. Every lane of the team gets them. The input is normed while the
// codes are loaded.
fn products(lane: u32, rows: vec4u) -> vec4f {
    var scales = vec2f(scale_of(rows.x), 0.0);
    if EACH > 1u {
        scales.y = scale_of(rows.y);
    }
    // There is a variable for each row, because indexing by a loop's variable is slow on drivers.
    var codes0: array<vec4u, STEPS>;
    var codes1: array<vec4u, STEPS>;
    for (var i = 0u; i < AHEAD; i++) {
        codes0[i] = codes(rows.x, i, lane);
        if EACH > 1u {
            codes1[i] = codes(rows.y, i, lane);
        }
    }
    let q_scale = norm_input(0u, lane);
    var sum0 = vec3i();
    var sum1 = vec3i();
    var sum = vec2i();
    for (var i = 0u; i < STEPS; i++) {
        if AHEAD < STEPS && i + AHEAD < STEPS {
            codes0[i + AHEAD] = codes(rows.x, i + AHEAD, lane);
            if EACH > 1u {
                codes1[i + AHEAD] = codes(rows.y, i + AHEAD, lane);
            }
        }
        let at = i * 4u * WIDTH * LANES + lane % LANES;
        if PACKED_DOT {
            let q0 = q[at];
            let q1 = q[at + LANES];
            let q2 = q[at + 2u * LANES];
            let q3 = q[at + 3u * LANES];
            sum0 += dot_codes(codes0[i], q0, q1, q2, q3);
            if EACH > 1u {
                sum1 += dot_codes(codes1[i], q0, q1, q2, q3);
            }
        } else {
            sum += dot_twos(codes0[i], codes1[i], at);
        }
    }
    if PACKED_DOT {
        sum = vec2i(whole(sum0), whole(sum1));
    }
    let d = lanes_sum_of_two(lane, sum);
    return vec4f(product(d.x, q_scale, scales.x), product(d.y, q_scale, scales.y), 0.0, 0.0);
}
