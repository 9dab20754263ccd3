// The rows of the second matrices of an adapter's pairs, times u. The rows belong to up to three matrices
// of the model, one after the other: the second begins at SECOND, the third at THIRD. u has RANK values for
// each of these PARTS.
//
// The kernel declares b, `array<vec4u>` [rows of all parts, RANK] f16, and u, `array<vec4f>`
// [n_tokens, PARTS, RANK].

const EIGHTS: u32 = RANK / 8u;

fn add_halves(sum: f32, b: vec2u, v: vec4f) -> f32 {
    let low = unpack2x16float(b.x);
    let high = unpack2x16float(b.y);
    return fma(high.y, v.w, fma(high.x, v.z, fma(low.y, v.y, fma(low.x, v.x, sum))));
}

fn delta(token: u32, row: u32) -> f32 {
    let part = select(0u, 1u, row >= SECOND) + select(0u, 1u, row >= THIRD);
    let first = (token * PARTS + part) * EIGHTS;
    var sum = 0.0;
    for (var i = 0u; i < EIGHTS; i++) {
        let words = b[row * EIGHTS + i];
        sum = add_halves(sum, words.xy, u[2u * (first + i)]);
        sum = add_halves(sum, words.zw, u[2u * (first + i) + 1u]);
    }
    return sum;
}
