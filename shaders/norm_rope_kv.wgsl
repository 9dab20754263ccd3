// Norms each head of q and k, rotates them by position (pairs i, i + HEAD_DIM / 2), scales q by 1 /
// sqrt(HEAD_DIM), and stores k and v in the cache. A workgroup takes one head of one token.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_Q + 2 N_KV]
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
// [HEAD_DIM]
@group(0) @binding(2) var<storage, read> q_norm: array<f32>;
// [HEAD_DIM]
@group(0) @binding(3) var<storage, read> k_norm: array<f32>;
// [n_ctx, HEAD_DIM / 2]: cos, sin
@group(0) @binding(4) var<storage, read> rope_table: array<vec2f>;
// [n_tokens, N_Q]
@group(0) @binding(5) var<storage, read_write> q: array<f32>;
// [positions, N_KV]
@group(0) @binding(6) var<storage, read_write> k_cache: array<u32>;
// [positions, N_KV]
@group(0) @binding(7) var<storage, read_write> v_cache: array<u32>;

const HALF: u32 = HEAD_DIM / 2u;
const PAIRS: u32 = (HALF + WORKGROUP - 1u) / WORKGROUP; // of a lane

// The head's values, rotated: a word of an f16 cache takes two of them.
var<workgroup> values: array<f32, HEAD_DIM>;

fn weight(is_query: bool, i: u32) -> f32 {
    if is_query {
        return q_norm[i];
    }
    return k_norm[i];
}

fn put(is_key: bool, at: u32, word: u32) {
    if is_key {
        k_cache[at] = word;
    } else {
        v_cache[at] = word;
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let head = group.x; // those of q, then of k, then of v
    let token = group.y;
    let row = (token * (N_HEAD + 2u * N_HEAD_KV) + head) * HEAD_DIM;
    let pos = step.pos + token;
    let is_query = head < N_HEAD;
    let is_value = head >= N_HEAD + N_HEAD_KV;
    var squares = 0.0;
    for (var n = 0u; n < PAIRS; n++) {
        let i = n * WORKGROUP + lane;
        if i < HALF {
            let a = qkv[row + i];
            let b = qkv[row + i + HALF];
            squares = fma(b, b, fma(a, a, squares));
        }
    }
    let mean = group_sum_max(lane, vec2f(squares, 0.0)).x / f32(HEAD_DIM);
    let scale = inverseSqrt(mean + EPS) * select(1.0, inverseSqrt(f32(HEAD_DIM)), is_query);
    for (var n = 0u; n < PAIRS; n++) {
        let i = n * WORKGROUP + lane;
        if i < HALF {
            var v = vec2f(qkv[row + i], qkv[row + i + HALF]);
            if !is_value {
                let normed = v * scale * vec2f(weight(is_query, i), weight(is_query, i + HALF));
                let t = rope_table[pos * HALF + i];
                v = vec2f(normed.x * t.x - normed.y * t.y, normed.y * t.x + normed.x * t.y);
            }
            values[i] = v.x;
            values[i + HALF] = v.y;
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < PAIRS; n++) {
        let i = 2u * (n * WORKGROUP + lane);
        if i < HEAD_DIM {
            let v = vec2f(values[i], values[i + 1u]);
            if is_query {
                q[token * N_Q + head * HEAD_DIM + i] = v.x;
                q[token * N_Q + head * HEAD_DIM + i + 1u] = v.y;
            } else {
                let kv_head = select(head - N_HEAD, head - N_HEAD - N_HEAD_KV, is_value);
                let at = (step.first + pos) * N_KV + kv_head * HEAD_DIM + i;
                if KV_F16 {
                    put(!is_value, at / 2u, pack2x16float(v));
                } else {
                    put(!is_value, at, bitcast<u32>(v.x));
                    put(!is_value, at + 1u, bitcast<u32>(v.y));
                }
            }
        }
    }
}
