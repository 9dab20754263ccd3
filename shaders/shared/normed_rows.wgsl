
// Ternary rows times one vector that every workgroup norms and quantises for itself: cheaper than a
// dispatch of its own where a workgroup has many rows. Int8 as in quantize.wgsl:
// q, s = int8 quantisation of x / sqrt(mean(x²) + EPS) * weight.
//
// The kernel declares w, `array<vec4u>` [.., K] codes; norm_weight, `array<vec4f>` [K]; and
// input(i), the vectors i, i + 8, i + 16 and i + 24 of x. LANES neighbouring lanes share EACH rows of w.

const WORDS: u32 = K / 16u;   // words of codes in a row
const VECTORS: u32 = K / 64u; // vectors of them
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES; // in which the lanes read a row
const INPUTS: u32 = (WORDS + WORKGROUP - 1u) / WORKGROUP; // words whose activations a lane makes
const SLOTS: u32 = WORKGROUP / LANES;

// The activations that each word of codes meets, [STEPS][4][LANES]: neighbouring lanes read
// neighbouring ones. What lies past the end of a row meets codes of 0.
var<workgroup> q: array<vec4u, STEPS * 4u * LANES>;

fn place(word: u32) -> u32 {
    let vector = word / 4u;
    return (vector / LANES * 4u + word % 4u) * LANES + vector % LANES;
}

// Codes of `row`, for one step of a lane.
fn codes(row: u32, at_step: u32, lane: u32) -> vec4u {
    let i = at_step * LANES + lane % LANES;
    return select(vec4u(), w[row * VECTORS + min(i, VECTORS - 1u)], i < VECTORS);
}

struct Input {
    a: vec4f,
    b: vec4f,
    c: vec4f,
    d: vec4f,
}

// The codes of a word's second and third group are not shifted down but counted 16 and 4 times:
// x holds the sums of the first and the last group, y 4 times the third's, z 16 times the second's.
fn dot_word3(word: u32, q: vec4u) -> vec3i {
    return vec3i(
        dot4((word >> 6u) & 0x03030303u, q.x) + dot4(word & 0x03030303u, q.w),
        dot4(word & 0x0c0c0c0cu, q.z),
        dot4(word & 0x30303030u, q.y),
    );
}

fn dot_codes(words: vec4u, q0: vec4u, q1: vec4u, q2: vec4u, q3: vec4u) -> vec3i {
    return dot_word3(words.x, q0) + dot_word3(words.y, q1) + dot_word3(words.z, q2) + dot_word3(words.w, q3);
}

fn whole(d: vec3i) -> i32 {
    return d.x + (d.y >> 2u) + (d.z >> 4u);
}

fn largest_of(v: vec4f) -> f32 {
    let a = abs(v);
    return max(max(a.x, a.y), max(a.z, a.w));
}

// Fills q; gives s and the sum of q.
fn norm_input(lane: u32) -> vec2f {
    // Values of the block's four groups: a word of codes meets four of each.
    var h: array<vec4f, INPUTS * 4u>;
    var squares_largest = vec2f();
    for (var n = 0u; n < INPUTS; n++) {
        let word = min(n * WORKGROUP + lane, WORDS - 1u);
        let inside = n * WORKGROUP + lane < WORDS;
        let i = word / 8u * 32u + word % 8u;
        let x = input(i);
        h[n * 4u] = x.a * norm_weight[i];
        h[n * 4u + 1u] = x.b * norm_weight[i + 8u];
        h[n * 4u + 2u] = x.c * norm_weight[i + 16u];
        h[n * 4u + 3u] = x.d * norm_weight[i + 24u];
        if inside {
            squares_largest.x += dot(x.a, x.a) + dot(x.b, x.b) + dot(x.c, x.c) + dot(x.d, x.d);
            let ab = max(largest_of(h[n * 4u]), largest_of(h[n * 4u + 1u]));
            let cd = max(largest_of(h[n * 4u + 2u]), largest_of(h[n * 4u + 3u]));
            squares_largest.y = max(squares_largest.y, max(ab, cd));
        }
    }
    let all = group_sum_max(lane, squares_largest);
    let scale = inverseSqrt(all.x / f32(K) + EPS);
    let s = 127.0 / max(1e-5, all.y * scale);
    var sum = 0;
    for (var n = 0u; n < INPUTS; n++) {
        let word = n * WORKGROUP + lane;
        if word < WORDS {
            let words = vec4u(
                quantize(h[n * 4u] * scale, s),
                quantize(h[n * 4u + 1u] * scale, s),
                quantize(h[n * 4u + 2u] * scale, s),
                quantize(h[n * 4u + 3u] * scale, s),
            );
            q[place(word)] = words;
            sum += sum_of_word(words.x) + sum_of_word(words.y) + sum_of_word(words.z) + sum_of_word(words.w);
        }
    }
    return vec2f(s, f32(group_sum_i32(lane, sum)));
}

// The products D of the lane's EACH rows with q, 0 in the rest; every lane of a slot gets them.
// Norms the input on the way, for codes that are on their way from memory meanwhile.
struct Products {
    d: vec4i,
    q_scale: vec2f,
}

fn products(lane: u32, rows: vec4u) -> Products {
    // Rows by name rather than by number: drivers are slow at indexing by a loop's variable.
    var codes0: array<vec4u, STEPS>;
    var codes1: array<vec4u, STEPS>;
    var codes2: array<vec4u, STEPS>;
    var codes3: array<vec4u, STEPS>;
    for (var i = 0u; i < STEPS; i++) {
        codes0[i] = codes(rows.x, i, lane);
        if EACH > 1u {
            codes1[i] = codes(rows.y, i, lane);
        }
        if EACH > 2u {
            codes2[i] = codes(rows.z, i, lane);
            codes3[i] = codes(rows.w, i, lane);
        }
    }
    let q_scale = norm_input(lane);
    var sum0 = vec3i();
    var sum1 = vec3i();
    var sum2 = vec3i();
    var sum3 = vec3i();
    for (var i = 0u; i < STEPS; i++) {
        let at = i * 4u * LANES + lane % LANES;
        let q0 = q[at];
        let q1 = q[at + LANES];
        let q2 = q[at + 2u * LANES];
        let q3 = q[at + 3u * LANES];
        sum0 += dot_codes(codes0[i], q0, q1, q2, q3);
        if EACH > 1u {
            sum1 += dot_codes(codes1[i], q0, q1, q2, q3);
        }
        if EACH > 2u {
            sum2 += dot_codes(codes2[i], q0, q1, q2, q3);
            sum3 += dot_codes(codes3[i], q0, q1, q2, q3);
        }
    }
    let sum = vec4i(whole(sum0), whole(sum1), whole(sum2), whole(sum3));
    return Products(lanes_sum_vec4i(lane, sum), q_scale);
}
