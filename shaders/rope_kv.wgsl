// Rotates q and k by position, scales q by 1 / sqrt(HEAD_DIM), and stores k and v in the cache. A
// workgroup takes one head of one token, see store_head.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_Q + 2 N_KV]
@group(0) @binding(1) var<storage, read> qkv: array<vec2f>;
// [n_ctx, HEAD_DIM / 2]: cos, sin
@group(0) @binding(2) var<storage, read> rope_table: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> q: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;

const PAIRS_EACH: u32 = (HALF / 2u + WORKGROUP - 1u) / WORKGROUP; // neighbouring pairs, two at a time, of each lane

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let token = step.row + group.y;
    let first = (token * (N_HEAD + 2u * N_HEAD_KV) + head) * HALF; // counted in twos of values
    for (var n = 0u; n < PAIRS_EACH; n++) {
        let i = 2u * (n * WORKGROUP + lane);
        if i < HALF {
            var v = Pairs(qkv[first + i / 2u], qkv[first + (i + HALF) / 2u]);
            if head < N_HEAD + N_HEAD_KV {
                let at_pair = row_of(token).pos * HALF + i;
                v = both_rotated(v, rope_table[at_pair], rope_table[at_pair + 1u]);
            }
            if head < N_HEAD {
                let scale = inverseSqrt(f32(HEAD_DIM));
                v = Pairs(v.first * scale, v.second * scale);
            }
            store_pairs(head, token, i, v);
        }
    }
    finish_head(lane, head, token);
}
