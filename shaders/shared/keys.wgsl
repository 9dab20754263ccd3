// Keys are integers that sort as their values do. -0 and 0 have the same key. NaN has the key 0,
// and every number has a greater one.
fn key_of(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let magnitude = bits & 0x7fffffffu;
    let key = select(magnitude | 0x80000000u, ~bits, bits > 0x80000000u);
    return select(key, 0u, magnitude > 0x7f800000u);
}

// Half the greatest f32. With this limit the distance of two values is finite.
const MAX_VALUE: f32 = 1.7e38;

fn value_of(key: u32) -> f32 {
    let value = bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
    return clamp(value, -MAX_VALUE, MAX_VALUE);
}

// The bits of a logit that was not computed.
const NOT_A_NUMBER: u32 = 0x7fffffffu;
