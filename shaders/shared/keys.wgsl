// Keys sort as integers like their values. -0 and 0 have the same key. NaN has the key 0, and every
// number a greater one.
fn key_of(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let magnitude = bits & 0x7fffffffu;
    let key = select(magnitude | 0x80000000u, ~bits, bits > 0x80000000u);
    return select(key, 0u, magnitude > 0x7f800000u);
}

