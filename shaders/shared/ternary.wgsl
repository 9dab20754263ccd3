// Products of ternary codes with int8 activations. quantize.wgsl has the order of the activations.

// The product of a word of codes, which are sixteen numbers 0, 1 or 2, with its sixteen
// activations.
fn dot_word(word: u32, q: vec4u) -> i32 {
    if PACKED_DOT {
        return dot4((word >> 6u) & 0x03030303u, q.x)
            + dot4((word >> 4u) & 0x03030303u, q.y)
            + dot4((word >> 2u) & 0x03030303u, q.z)
            + dot4(word & 0x03030303u, q.w);
    }
    return whole_twos(add_twos(vec2i(NO_TWOS), word, twos(turned(q))));
}

// Without PACKED_DOT, one multiplication of integers makes two products. Two activations are a + b
// * 2^16. Their codes are 16 bits apart in a word, but in the other order: c_b + c_a * 2^16. The
// multiplication gives a * c_b + (a * c_a + b * c_b) * 2^16, and higher bits are lost. Only the
// upper half is wanted. The lower half is of no use, but its sum must stay within 2^15, or else it
// would change the upper half.

// The activations of a word of codes, in twos. `even` has the third and the first of each group,
// `odd` the fourth and the second.
struct Twos {
    even: vec4i,
    odd: vec4i,
}

// Each activation plus 128, with the halves of each word exchanged.
fn turned(q: vec4u) -> vec4u {
    return ((q << vec4u(16u)) | (q >> vec4u(16u))) ^ vec4u(0x80808080u);
}

fn twos(turned: vec4u) -> Twos {
    return Twos(
        vec4i(turned & vec4u(0x00ff00ffu)) - vec4i(0x00800080),
        vec4i((turned >> vec4u(8u)) & vec4u(0x00ff00ffu)) - vec4i(0x00800080),
    );
}

// Sums begin with this, so that whole_twos rounds to the nearest integer.
const NO_TWOS: i32 = 0x8000;

// Adds the products of a word of codes. Half of the codes are not shifted down. They count 4 times,
// and are added up in sum.y. There is room for four words: 16 * (2 * 127 * 2) * 4 < 2^15.
fn add_twos(sum: vec2i, word: u32, q: Twos) -> vec2i {
    let words = bitcast<vec4i>(vec4u(word, word >> 4u, word >> 8u, word >> 12u));
    let ones = words & vec4i(0x00030003);
    let fours = words & vec4i(0x000c000c);
    // Each product is added to the sum separately, because cards multiply and add in one operation.
    var s = sum;
    s.x += ones.x * q.even.w;
    s.x += ones.y * q.even.y;
    s.x += ones.z * q.odd.w;
    s.x += ones.w * q.odd.y;
    s.y += fours.x * q.even.z;
    s.y += fours.y * q.even.x;
    s.y += fours.z * q.odd.z;
    s.y += fours.w * q.odd.x;
    return s;
}

fn whole_twos(sum: vec2i) -> i32 {
    return (sum.x >> 16u) + (sum.y >> 18u);
}

// A word of codes of each of four rows. With PACKED_DOT, the same codes unpacked, four in a word.
struct FourRows {
    words: vec4u,
    c0: vec4u,
    c1: vec4u,
    c2: vec4u,
    c3: vec4u,
}

fn four_rows(words: vec4u) -> FourRows {
    if PACKED_DOT {
        return FourRows(
            words,
            (words >> vec4u(6u)) & vec4u(0x03030303u),
            (words >> vec4u(4u)) & vec4u(0x03030303u),
            (words >> vec4u(2u)) & vec4u(0x03030303u),
            words & vec4u(0x03030303u),
        );
    }
    return FourRows(words, vec4u(), vec4u(), vec4u(), vec4u());
}

// Four codes of each row times the same four activations.
fn dot_rows(codes: vec4u, q: u32) -> vec4i {
    return vec4i(dot4(codes.x, q), dot4(codes.y, q), dot4(codes.z, q), dot4(codes.w, q));
}

// Adds the products of each row's word with the same sixteen activations. Each product is added to
// the sum separately, because cards multiply and add in one operation.
fn add_rows(sum: vec4i, rows: FourRows, q: vec4u) -> vec4i {
    if PACKED_DOT {
        return sum + dot_rows(rows.c0, q.x) + dot_rows(rows.c1, q.y) + dot_rows(rows.c2, q.z)
            + dot_rows(rows.c3, q.w);
    }
    let w = rows.words;
    return sum + vec4i(dot_word(w.x, q), dot_word(w.y, q), dot_word(w.z, q), dot_word(w.w, q));
}
