// int8 activations: q = clamp(round_half_even(x * s)), s = 127 / max(1e-5, max|x|) over the row.
//
// A word holds four values. The words of a block of 128 elements are in the order of the i2_s
// codes. Words 4w .. 4w+3 of a block belong to its w-th word of codes. They begin with elements 4w,
// 32+4w, 64+4w and 96+4w, one for each of the four groups of that word.

// If this is added to a float of less than 2^22, the lowest bits of the sum are the nearest
// integer. A half goes to the even one. Many cards round and convert at a quarter of the rate of
// additions.
const ROUNDER: f32 = 12582912.0; // 1.5 * 2^23

fn quantize(x: vec4f, s: f32) -> u32 {
    let q = bitcast<vec4i>(clamp(x * s, vec4f(-128.0), vec4f(127.0)) + ROUNDER) & vec4i(255);
    return u32(q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u));
}

// The sum of four int8 values. It has to be right also where a driver compiles dot4I8Packed wrong.
fn sum_of_word(word: u32) -> i32 {
    let u = word ^ 0x80808080u; // each value plus 128
    let pairs = (u & 0x00ff00ffu) + ((u >> 8u) & 0x00ff00ffu);
    return i32((pairs + (pairs >> 16u)) & 0xffffu) - 512;
}

