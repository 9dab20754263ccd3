// Epilogue: queries, keys and values. q and k are rotated by position, as in rope_kv.wgsl. q is scaled by
// 1 / sqrt(HEAD_DIM) and stored in queries. k and v are stored in the cache.
//
// A team computes the two values of a pair, i and i + HEAD_DIM / 2. A workgroup computes TEAMS
// neighbouring pairs.

// [n_ctx, HEAD_DIM / 2]: cos, sin
@group(0) @binding(EPILOGUE_AT) var<storage, read> rope_table: array<vec2f>;
// [N_Q]
@group(0) @binding(EPILOGUE_AT + 1u) var<storage, read_write> queries: array<f32>;
// [positions, KV_ROW]
@group(0) @binding(EPILOGUE_AT + 2u) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(EPILOGUE_AT + 3u) var<storage, read_write> v_cache: array<u32>;

const_assert EACH == 2u; // a pair
const_assert KV_BITS >= 16u; // the scale of int8 needs the whole head

const HALF: u32 = HEAD_DIM / 2u;

// The first values of all pairs, then all second values.
var<workgroup> values: array<f32, 2u * TEAMS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let team = lane / LANES;
    let first_pair = group.x * TEAMS; // index over all heads of the shard
    let pair = first_pair + team;
    let row = min(pair / HALF * HEAD_DIM + pair % HALF, N_ROWS - HALF - 1u);
    let all = FIRST_ROW + row;
    // Loaded together with the codes: at the end the lanes would have to wait.
    let rope = rope_table[step.pos * HALF + pair % HALF];
    var v = FACTOR * products(lane, vec4u(row, row + HALF, 0u, 0u)).xy;
    if lane % LANES == 0u {
        if all < N_Q + N_KV {
            v = rotated(v, rope);
        }
        values[team] = v.x;
        values[TEAMS + team] = v.y;
    }
    workgroupBarrier();
    // Each lane stores two neighbouring values: one word of an f16 cache.
    if lane < TEAMS {
        let half = lane / (TEAMS / 2u); // first or second values of the pairs
        let i = lane % (TEAMS / 2u) * 2u;
        let pair = first_pair + i;
        if pair < N_ROWS / 2u {
            let at = FIRST_ROW + pair / HALF * HEAD_DIM + pair % HALF + half * HALF;
            store(at, vec2f(values[half * TEAMS + i], values[half * TEAMS + i + 1u]));
        }
    }
}

fn store(at: u32, v: vec2f) {
    if at < N_Q {
        let scaled = v * inverseSqrt(f32(HEAD_DIM));
        queries[at] = scaled.x;
        queries[at + 1u] = scaled.y;
        return;
    }
    let is_key = at < N_Q + N_KV;
    let row = (step.first + step.pos) * KV_ROW;
    put_two(is_key, row, at - select(N_Q + N_KV, N_Q, is_key), v);
}
