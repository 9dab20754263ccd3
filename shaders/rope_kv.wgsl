// Rotates q and k by position (NeoX pairs i, i + HEAD_DIM / 2), scales q by 1 / sqrt(HEAD_DIM), and
// stores k and v in the cache. A thread takes EACH values: two pairs of q or k, or four values of
// v.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_Q + 2 N_KV]
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
// [n_ctx, HEAD_DIM / 2]: cos, sin
@group(0) @binding(2) var<storage, read> rope_table: array<vec2f>;
// [n_tokens, N_Q]
@group(0) @binding(3) var<storage, read_write> q: array<vec2f>;
// [positions, N_KV]
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>;
// [positions, N_KV]
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;

const HALF: u32 = HEAD_DIM / 2u;

const_assert EACH == 4u; // the components of a vector

// x and its partner, rotated: (x0, x1, y0, y1).
fn rotated(row: u32, at: u32, pos: u32) -> vec4f {
    let i = at % HEAD_DIM;
    let x = vec2f(qkv[row + at], qkv[row + at + 1u]);
    let y = vec2f(qkv[row + at + HALF], qkv[row + at + HALF + 1u]);
    let t0 = rope_table[pos * HALF + i];
    let t1 = rope_table[pos * HALF + i + 1u];
    let c = vec2f(t0.x, t1.x);
    let s = vec2f(t0.y, t1.y);
    return vec4f(x * c - y * s, y * c + x * s);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let token = id.y;
    let row = token * N_QKV;
    let pos = step.pos + token;
    let i = id.x;
    if i >= N_QKV / EACH {
        return;
    }
    if i < (N_Q + N_KV) / EACH {
        // The first half of each head holds the first values of its pairs.
        let at = i / (HALF / 2u) * HEAD_DIM + i % (HALF / 2u) * 2u;
        let v = rotated(row, at, pos);
        if at < N_Q {
            let out = (token * N_Q + at) / 2u;
            let scale = inverseSqrt(f32(HEAD_DIM));
            q[out] = v.xy * scale;
            q[out + HALF / 2u] = v.zw * scale;
        } else {
            let out = (step.first + pos) * N_KV + at - N_Q;
            if KV_F16 {
                k_cache[out / 2u] = pack2x16float(v.xy);
                k_cache[(out + HALF) / 2u] = pack2x16float(v.zw);
            } else {
                let bits = bitcast<vec4u>(v);
                k_cache[out] = bits.x;
                k_cache[out + 1u] = bits.y;
                k_cache[out + HALF] = bits.z;
                k_cache[out + HALF + 1u] = bits.w;
            }
        }
    } else {
        let at = EACH * i - N_Q - N_KV;
        let source = row + EACH * i;
        let v = vec4f(qkv[source], qkv[source + 1u], qkv[source + 2u], qkv[source + 3u]);
        let out = (step.first + pos) * N_KV + at;
        if KV_F16 {
            v_cache[out / 2u] = pack2x16float(v.xy);
            v_cache[out / 2u + 1u] = pack2x16float(v.zw);
        } else {
            let bits = bitcast<vec4u>(v);
            v_cache[out] = bits.x;
            v_cache[out + 1u] = bits.y;
            v_cache[out + 2u] = bits.z;
            v_cache[out + 3u] = bits.w;
        }
    }
}
