// For kernels that rotate heads and fill the cache. They declare k_cache and v_cache, `array<u32>`
// [positions, KV_ROW]. Kernels of one token and of several give the same bits, so every operation
// that a compiler could fuse with another is explicit.

// A pair of values of a head, i and i + HEAD_DIM / 2 (as in NeoX), rotated by an angle. `t` is the
// cos and the sin of the angle.
fn rotated(v: vec2f, t: vec2f) -> vec2f {
    return vec2f(fma(v.x, t.x, -(v.y * t.y)), fma(v.y, t.x, v.x * t.y));
}

// Two neighbouring pairs.
struct Pairs {
    first: vec2f,
    second: vec2f,
}

fn both_rotated(v: Pairs, t0: vec2f, t1: vec2f) -> Pairs {
    let a = rotated(vec2f(v.first.x, v.second.x), t0);
    let b = rotated(vec2f(v.first.y, v.second.y), t1);
    return Pairs(vec2f(a.x, b.x), vec2f(a.y, b.y));
}

fn put_kv(is_key: bool, at: u32, word: u32) {
    if is_key {
        k_cache[at] = word;
    } else {
        v_cache[at] = word;
    }
}

// Stores two neighbouring values as floats, in the row that begins at the word `row`. `i` is the
// number of the first value.
fn put_two(is_key: bool, row: u32, i: u32, v: vec2f) {
    let at = row + i * KV_BITS / 32u;
    if KV_BITS == 16u {
        put_kv(is_key, at, pack2x16float(v));
    } else {
        put_kv(is_key, at, bitcast<u32>(v.x));
        put_kv(is_key, at + 1u, bitcast<u32>(v.y));
    }
}
