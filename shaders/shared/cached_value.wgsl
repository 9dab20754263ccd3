// Four values of the cache: see kv_values.wgsl. The kernel declares v_cache, `array<vec2u>` [positions,
// KV_ROW]. attention.wgsl reads single words and has a value() of its own, for pairs. attention_prefill.wgsl
// has key(), which is the same for another buffer: a function cannot take a buffer as an argument.

fn value(position: u32, head_kv: u32, four: u32) -> vec4f {
    let at = pair_of(position, head_kv, four);
    if KV_BITS == 32u {
        return bitcast<vec4f>(vec4u(v_cache[at], v_cache[at + 1u]));
    }
    if KV_BITS == 16u {
        return four_f16(v_cache[at]);
    }
    let scale = FIRST_SCALE + head_kv;
    return four_int8(v_cache[at], four)
        * bitcast<f32>(v_cache[position * (KV_ROW / 2u) + scale / 2u][scale % 2u]);
}
