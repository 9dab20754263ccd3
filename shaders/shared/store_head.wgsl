// Stores a head of one token. `head` counts the heads of q, then those of k, then those of v. The
// kernel declares step, and q, `array<f32>` [n_tokens, N_Q]. rope_kv.wgsl says what else it
// declares.

const HALF: u32 = HEAD_DIM / 2u;

// A head that will be stored in a cache of int8. Its scale depends on all of its values.
var<workgroup> unscaled: array<vec2f, HALF>;

fn cache_row(token: u32) -> u32 {
    let row = row_of(token);
    return (row.first + row.pos) * KV_ROW;
}

// Stores the values i and i + 1, and i + HALF and i + HALF + 1.
fn store_pairs(head: u32, token: u32, i: u32, v: Pairs) {
    if head < N_HEAD {
        let at = token * N_Q + head * HEAD_DIM + i;
        q[at] = v.first.x;
        q[at + 1u] = v.first.y;
        q[at + HALF] = v.second.x;
        q[at + HALF + 1u] = v.second.y;
    } else if KV_BITS == 8u {
        unscaled[i / 2u] = v.first;
        unscaled[(i + HALF) / 2u] = v.second;
    } else {
        let is_key = head < N_HEAD + N_HEAD_KV;
        let at = (head - N_HEAD) % N_HEAD_KV * HEAD_DIM + i;
        put_two(is_key, cache_row(token), at, v.first);
        put_two(is_key, cache_row(token), at + HALF, v.second);
    }
}

// Completes a head. The whole workgroup calls it once all values have been passed to store_pairs.
fn finish_head(lane: u32, head: u32, token: u32) {
    if KV_BITS != 8u {
        return;
    }
    workgroupBarrier();
    if head < N_HEAD {
        return;
    }
    // Floats that are not negative sort as their bits do, and NaN comes last. So with a NaN the
    // scale is NaN, and so are all values, as they would be in a cache of floats.
    var bits = vec2u();
    for (var i = 0u; i < HALF; i++) {
        bits = max(bits, bitcast<vec2u>(abs(unscaled[i])));
    }
    let largest = bitcast<f32>(max(bits.x, bits.y));
    let is_key = head < N_HEAD + N_HEAD_KV;
    let head_kv = (head - N_HEAD) % N_HEAD_KV;
    let row = cache_row(token);
    for (var n = 0u; n < (HEAD_WORDS + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        if i < HEAD_WORDS {
            let four = vec4f(unscaled[2u * i], unscaled[2u * i + 1u]);
            let word = packed_bytes(rounded(four, per_scale(largest)));
            put_kv(is_key, row + head_kv * HEAD_WORDS + i, word);
        }
    }
    if lane == 0u {
        put_kv(is_key, row + FIRST_SCALE + head_kv, bitcast<u32>(largest / 127.0));
    }
}
