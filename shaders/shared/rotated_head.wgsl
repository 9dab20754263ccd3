// Norms a head of q or k, rotates it by position (pairs i, i + HEAD_DIM / 2), scales q by 1 /
// sqrt(HEAD_DIM), and stores it. Stores a head of v as it is. Kernels of one token and of several
// give the same bits, so every operation that could be fused with another is explicit.
//
// The kernel declares step; head_norms, `array<f32>` [2][HEAD_DIM] of q and of k; rope_table,
// `array<vec2f>` [n_ctx, HEAD_DIM / 2]: cos, sin; q, `array<f32>` [n_tokens, N_Q]; k_cache and
// v_cache, `array<u32>` [positions, N_KV].

const HALF: u32 = HEAD_DIM / 2u;

var<workgroup> head_values: array<vec4f, HEAD_DIM / 4u>;

// How the values i, i + 1, i + HALF and i + HALF + 1 of a head are normed and rotated.
struct Rotation {
    weights: vec4f,
    cos: vec2f,
    sin: vec2f,
}

fn rotation_of(head: u32, token: u32, i: u32) -> Rotation {
    let at = select(0u, HEAD_DIM, head >= N_HEAD) + i;
    let at_pair = (step.pos + token) * HALF + i;
    let t0 = rope_table[at_pair];
    let t1 = rope_table[at_pair + 1u];
    return Rotation(
        vec4f(
            head_norms[at],
            head_norms[at + 1u],
            head_norms[at + HALF],
            head_norms[at + HALF + 1u],
        ),
        vec2f(t0.x, t1.x),
        vec2f(t0.y, t1.y),
    );
}

fn two_values(i: u32) -> vec2f {
    let four = head_values[i / 4u];
    return select(four.xy, four.zw, i % 4u == 2u);
}

fn put(is_key: bool, at: u32, v: vec2f) {
    if KV_F16 {
        let word = pack2x16float(v);
        if is_key {
            k_cache[at / 2u] = word;
        } else {
            v_cache[at / 2u] = word;
        }
        return;
    }
    if is_key {
        k_cache[at] = bitcast<u32>(v.x);
        k_cache[at + 1u] = bitcast<u32>(v.y);
    } else {
        v_cache[at] = bitcast<u32>(v.x);
        v_cache[at + 1u] = bitcast<u32>(v.y);
    }
}

// Stores the values i, i + 1, i + HALF and i + HALF + 1 of head_values, as head number `head` of those
// of q, then of k, then of v.
fn store_rotated(head: u32, token: u32, i: u32, rotation: Rotation) {
    let is_query = head < N_HEAD;
    let is_value = head >= N_HEAD + N_HEAD_KV;
    var a = two_values(i);
    var b = two_values(i + HALF);
    if !is_value {
        var squares = 0.0;
        for (var n = 0u; n < HEAD_DIM / 4u; n++) {
            let v = head_values[n];
            squares = fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, squares))));
        }
        let scale = inverseSqrt(squares / f32(HEAD_DIM) + EPS)
            * select(1.0, inverseSqrt(f32(HEAD_DIM)), is_query);
        a = a * scale * rotation.weights.xy;
        b = b * scale * rotation.weights.zw;
        let rotated = fma(a, rotation.cos, -(b * rotation.sin));
        b = fma(b, rotation.cos, a * rotation.sin);
        a = rotated;
    }
    if is_query {
        let at = token * N_Q + head * HEAD_DIM + i;
        q[at] = a.x;
        q[at + 1u] = a.y;
        q[at + HALF] = b.x;
        q[at + HALF + 1u] = b.y;
    } else {
        let of_kv = select(head - N_HEAD, head - N_HEAD - N_HEAD_KV, is_value);
        let at = (step.first + step.pos + token) * N_KV + of_kv * HEAD_DIM + i;
        put(!is_value, at, a);
        put(!is_value, at + HALF, b);
    }
}
