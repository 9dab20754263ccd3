// A whole workgroup norms and quantises one row: q and its scale s are the int8 quantisation of x /
// sqrt(mean(x²) + EPS) * weight. quantize.wgsl has the order of q.
//
// All kernels that norm a row must give the same bits, for one token and for many. So every
// operation that a compiler could fuse with another is explicit.
//
// The kernel declares weight(i), the vector i of the norm's weight [K]; input(token, i), which
// returns the vectors i, i + 8, i + 16 and i + 24 of x; put(token, word, q), which stores the
// sixteen activations for one word of codes; and NORM. norm_weight.wgsl, row_input.wgsl and
// quantized_rows.wgsl have the usual ones. If NORM is false, the row is quantised as it
// is.

const WORDS: u32 = K / 16u; // words of codes in a row
const INPUTS: u32 = (WORDS + WORKGROUP - 1u) / WORKGROUP; // words of each lane

struct Input {
    a: vec4f,
    b: vec4f,
    c: vec4f,
    d: vec4f,
}

fn square_of(v: vec4f) -> f32 {
    return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, v.x * v.x)));
}

fn largest_of(v: vec4f) -> f32 {
    let a = abs(v);
    return max(max(a.x, a.y), max(a.z, a.w));
}

// Stores all activations of a token with put. Returns s and the sum of q.
fn norm_input(token: u32, lane: u32) -> vec2f {
    // For each word of codes: four values of each of the four groups of its block.
    var h: array<vec4f, INPUTS * 4u>;
    var squares_largest = vec2f();
    for (var n = 0u; n < INPUTS; n++) {
        let word = min(n * WORKGROUP + lane, WORDS - 1u);
        let inside = n * WORKGROUP + lane < WORDS;
        let i = word / 8u * 32u + word % 8u;
        let x = input(token, i);
        h[n * 4u] = x.a * weight(i);
        h[n * 4u + 1u] = x.b * weight(i + 8u);
        h[n * 4u + 2u] = x.c * weight(i + 16u);
        h[n * 4u + 3u] = x.d * weight(i + 24u);
        if inside {
            squares_largest.x +=
                (square_of(x.a) + square_of(x.b)) + (square_of(x.c) + square_of(x.d));
            let ab = max(largest_of(h[n * 4u]), largest_of(h[n * 4u + 1u]));
            let cd = max(largest_of(h[n * 4u + 2u]), largest_of(h[n * 4u + 3u]));
            squares_largest.y = max(squares_largest.y, max(ab, cd));
        }
    }
    let all = group_sum_max(lane, squares_largest);
    let scale = select(1.0, inverseSqrt(all.x / f32(K) + EPS), NORM);
    let s = 127.0 / max(1e-5, all.y * scale);
    var sum = 0;
    for (var n = 0u; n < INPUTS; n++) {
        let word = n * WORKGROUP + lane;
        if word < WORDS {
            let q = vec4u(
                quantize(h[n * 4u] * scale, s),
                quantize(h[n * 4u + 1u] * scale, s),
                quantize(h[n * 4u + 2u] * scale, s),
                quantize(h[n * 4u + 3u] * scale, s),
            );
            put(token, word, q);
            sum += sum_of_word(q.x) + sum_of_word(q.y) + sum_of_word(q.z) + sum_of_word(q.w);
        }
    }
    return vec2f(s, f32(group_sum_i32(lane, sum)));
}
