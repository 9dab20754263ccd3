// Ternary rows times one vector. Every workgroup norms and quantises the vector for itself: see
// normed_input.wgsl. If a workgroup has many rows, this is cheaper than another dispatch.
//
// The kernel declares w, `array<vec4u>` [.., K] codes, and what normed_input.wgsl needs, but not
// put. A slot of LANES neighbouring lanes shares EACH rows of w.

const VECTORS: u32 = K / 64u; // vectors of four words of codes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES; // to read a row

const_assert EACH == 1u || EACH == 2u;

// The activations for each word of codes, [STEPS][4][LANES], so that neighbouring lanes read
// neighbours. Past the end of a row they are multiplied with codes of 0.
var<workgroup> q: array<vec4u, STEPS * 4u * LANES>;

fn put(token: u32, word: u32, values: vec4u) {
    let vector = word / 4u;
    q[(vector / LANES * 4u + word % 4u) * LANES + vector % LANES] = values;
}

// The codes of `row` that a lane reads in one step.
fn codes(row: u32, at_step: u32, lane: u32) -> vec4u {
    let i = at_step * LANES + lane % LANES;
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
struct FloatSums {
    row0: vec4f,
    row1: vec4f,
}

// Adds the products of a word of codes of each row. The activations become floats once for all rows.
fn add_floats(sums: FloatSums, words: vec2u, q: vec4u) -> FloatSums {
    let x = sixteen_floats(q);
    var s = sums;
    s.row0 = add_word(s.row0, words.x, x);
    if EACH > 1u {
        s.row1 = add_word(s.row1, words.y, x);
    }
    return s;
}

// The products D of q with the EACH rows of the slot, and the scale and sum of q. Every lane of the
// slot gets them.
struct Products {
    d: vec2i,
    q_scale: vec2f,
}

// Norms the input while the codes are loaded.
fn products(lane: u32, rows: vec2u) -> Products {
    // There is a variable for each row, because indexing by a loop's variable is slow on drivers.
    var codes0: array<vec4u, STEPS>;
    var codes1: array<vec4u, STEPS>;
    for (var i = 0u; i < STEPS; i++) {
        codes0[i] = codes(rows.x, i, lane);
        if EACH > 1u {
            codes1[i] = codes(rows.y, i, lane);
        }
    }
    let q_scale = norm_input(0u, lane);
    var sum0 = vec3i();
    var sum1 = vec3i();
    var floats = FloatSums();
    for (var i = 0u; i < STEPS; i++) {
        let at = i * 4u * LANES + lane % LANES;
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
            let c0 = codes0[i];
            let c1 = codes1[i];
            floats = add_floats(floats, vec2u(c0.x, c1.x), q[at]);
            floats = add_floats(floats, vec2u(c0.y, c1.y), q[at + LANES]);
            floats = add_floats(floats, vec2u(c0.z, c1.z), q[at + 2u * LANES]);
            floats = add_floats(floats, vec2u(c0.w, c1.w), q[at + 3u * LANES]);
        }
    }
    var sum = vec2i(whole(sum0), whole(sum1));
    if !PACKED_DOT {
        sum = vec2i(whole_sum(floats.row0), whole_sum(floats.row1));
    }
    return Products(lanes_sum_vec2i(lane, sum), q_scale);
}
