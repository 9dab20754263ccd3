// softmax(q · k) v for many tokens: tiles of TOKENS tokens by HEADS query heads that share a KV head
// against KEYS positions, over one part of the context, in one pass (online softmax). The parts are put
// together by attention_merge.
//
// A row is one head of one token. For the scores a thread holds 4 rows by 4 keys; for the sums 8
// rows by two vectors of a head's values. Where neighbouring threads read vectors of neighbouring rows,
// these are shuffled within the row, so that they come from different banks of the memory.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;       // [n_tokens, N_HEAD, HEAD_DIM], scaled and turned
@group(0) @binding(2) var<storage, read> k_cache: array<vec2u>;       // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;       // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(4) var<storage, read_write> part: array<vec4f>;    // [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(5) var<storage, read_write> part_ml: array<vec2f>; // [n_tokens, n_splits, N_HEAD]: largest score, sum of exp

const WORKGROUP: u32 = 128u;
const ROWS: u32 = 64u;
const KEYS: u32 = 32u;
const KEY_QUADS: u32 = KEYS / 4u;
const TOKENS: u32 = ROWS / HEADS;
const QUADS: u32 = HEAD_DIM / 4u; // vectors in a head
const SLICE: u32 = 4u;            // of them multiplied at a time
const SLICES: u32 = (QUADS + SLICE - 1u) / SLICE;
const V_KEYS: u32 = 8u;           // keys whose values are multiplied at a time

// A slice of queries [ROWS][SLICE] and keys [KEYS][SLICE], or values [V_KEYS][QUADS].
var<workgroup> tile: array<vec4f, (ROWS + KEYS) * SLICE>;
var<workgroup> scores: array<vec4f, ROWS * KEY_QUADS>; // then their exponentials
var<workgroup> shrinks: array<f32, ROWS>;

fn in_tile(row: u32, vector: u32) -> u32 {
    return row * SLICE + (vector ^ ((row / 2u) % SLICE));
}

fn in_scores(row: u32, quad: u32) -> u32 {
    return row * KEY_QUADS + (quad ^ (row % KEY_QUADS));
}

fn key(at: u32) -> vec4f {
    if KV_F16 {
        return vec4f(unpack2x16float(k_cache[at].x), unpack2x16float(k_cache[at].y));
    }
    return bitcast<vec4f>(vec4u(k_cache[2u * at], k_cache[2u * at + 1u]));
}

fn value(at: u32) -> vec4f {
    if KV_F16 {
        return vec4f(unpack2x16float(v_cache[at].x), unpack2x16float(v_cache[at].y));
    }
    return bitcast<vec4f>(vec4u(v_cache[2u * at], v_cache[2u * at + 1u]));
}

fn dots(q: vec4f, k0: vec4f, k1: vec4f, k2: vec4f, k3: vec4f) -> vec4f {
    return vec4f(dot(q, k0), dot(q, k1), dot(q, k2), dot(q, k3));
}

fn mix4(weights: vec4f, v0: vec4f, v1: vec4f, v2: vec4f, v3: vec4f) -> vec4f {
    return weights.x * v0 + weights.y * v1 + weights.z * v2 + weights.w * v3;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x * HEADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let first_token = group.y * TOKENS;
    let split = group.z;
    let start = split * step.split_len;
    let end = min(step.pos + min(first_token + TOKENS, step.n_tokens), start + step.split_len);
    let tiles = (max(end, start) - start + KEYS - 1u) / KEYS;

    let score_row = lane / 8u;   // and 16, 32, 48 more
    let score_quad = lane % 8u;  // of keys
    let sum_row = lane / 16u;    // and 8, 16 ... more
    let sum_quad = lane % 16u;   // of values, and 16 more
    // Of the row whose scores this lane looks after, if there is one.
    let token = first_token + lane / HEADS;
    let sees = min(step.pos + token + 1u, end);
    var largest = -1e30;
    var total = 0.0;
    var low: array<vec4f, 8>;
    var high: array<vec4f, 8>;

    for (var t = 0u; t < tiles; t++) {
        let first = start + t * KEYS;
        var s0 = vec4f();
        var s1 = vec4f();
        var s2 = vec4f();
        var s3 = vec4f();
        for (var slice = 0u; slice < SLICES; slice++) {
            workgroupBarrier();
            let vector = lane % SLICE;
            let quad = slice * SLICE + vector;
            let inside = QUADS % SLICE == 0u || quad < QUADS;
            for (var i = 0u; i < ROWS * SLICE / WORKGROUP; i++) {
                let row = i * (WORKGROUP / SLICE) + lane / SLICE;
                let of_token = min(first_token + row / HEADS, step.n_tokens - 1u);
                let at = (of_token * N_HEAD + first_head + row % HEADS) * QUADS + min(quad, QUADS - 1u);
                tile[in_tile(row, vector)] = select(vec4f(), queries[at], inside);
            }
            // Key 4a + b is row 8b + a, because a thread takes four neighbouring keys.
            let of_key = lane / SLICE;
            let position = min(first + of_key, end - 1u);
            let at = (position * N_HEAD_KV + head_kv) * QUADS + min(quad, QUADS - 1u);
            tile[in_tile(ROWS + of_key % 4u * 8u + of_key / 4u, vector)] = select(vec4f(), key(at), inside);
            workgroupBarrier();
            for (var v = 0u; v < SLICE; v++) {
                let k0 = tile[in_tile(ROWS + score_quad, v)];
                let k1 = tile[in_tile(ROWS + 8u + score_quad, v)];
                let k2 = tile[in_tile(ROWS + 16u + score_quad, v)];
                let k3 = tile[in_tile(ROWS + 24u + score_quad, v)];
                s0 += dots(tile[in_tile(score_row, v)], k0, k1, k2, k3);
                s1 += dots(tile[in_tile(score_row + 16u, v)], k0, k1, k2, k3);
                s2 += dots(tile[in_tile(score_row + 32u, v)], k0, k1, k2, k3);
                s3 += dots(tile[in_tile(score_row + 48u, v)], k0, k1, k2, k3);
            }
        }
        scores[in_scores(score_row, score_quad)] = s0;
        scores[in_scores(score_row + 16u, score_quad)] = s1;
        scores[in_scores(score_row + 32u, score_quad)] = s2;
        scores[in_scores(score_row + 48u, score_quad)] = s3;
        workgroupBarrier();
        if lane < ROWS {
            var most = vec4f(largest);
            for (var quad = 0u; quad < KEY_QUADS; quad++) {
                let positions = first + 4u * quad + vec4u(0u, 1u, 2u, 3u);
                let s = scores[in_scores(lane, quad)];
                most = max(most, select(vec4f(-1e30), s, positions < vec4u(sees)));
            }
            let tile_largest = max(max(most.x, most.y), max(most.z, most.w));
            var sum = vec4f();
            for (var quad = 0u; quad < KEY_QUADS; quad++) {
                let positions = first + 4u * quad + vec4u(0u, 1u, 2u, 3u);
                let s = scores[in_scores(lane, quad)];
                let weights = select(vec4f(), exp(s - tile_largest), positions < vec4u(sees));
                scores[in_scores(lane, quad)] = weights;
                sum += weights;
            }
            let shrink = exp(largest - tile_largest);
            shrinks[lane] = shrink;
            total = total * shrink + sum.x + sum.y + sum.z + sum.w;
            largest = tile_largest;
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            let shrink = shrinks[sum_row + 8u * i];
            low[i] *= shrink;
            high[i] *= shrink;
        }
        for (var slice = 0u; slice < KEYS / V_KEYS; slice++) {
            workgroupBarrier();
            for (var i = lane; i < V_KEYS * QUADS; i += WORKGROUP) {
                let position = min(first + slice * V_KEYS + i / QUADS, end - 1u);
                tile[i] = value((position * N_HEAD_KV + head_kv) * QUADS + i % QUADS);
            }
            workgroupBarrier();
            for (var four = 0u; four < V_KEYS / 4u; four++) {
                let quad = slice * (V_KEYS / 4u) + four;
                let at = four * 4u * QUADS + min(sum_quad, QUADS - 1u);
                let a0 = tile[at];
                let a1 = tile[at + QUADS];
                let a2 = tile[at + 2u * QUADS];
                let a3 = tile[at + 3u * QUADS];
                if QUADS > 16u {
                    let at = four * 4u * QUADS + min(sum_quad + 16u, QUADS - 1u);
                    let b0 = tile[at];
                    let b1 = tile[at + QUADS];
                    let b2 = tile[at + 2u * QUADS];
                    let b3 = tile[at + 3u * QUADS];
                    for (var i = 0u; i < 8u; i++) {
                        let weights = scores[in_scores(sum_row + 8u * i, quad)];
                        low[i] += mix4(weights, a0, a1, a2, a3);
                        high[i] += mix4(weights, b0, b1, b2, b3);
                    }
                } else {
                    for (var i = 0u; i < 8u; i++) {
                        low[i] += mix4(scores[in_scores(sum_row + 8u * i, quad)], a0, a1, a2, a3);
                    }
                }
            }
        }
    }

    for (var i = 0u; i < 8u; i++) {
        let row = sum_row + 8u * i;
        let of_token = first_token + row / HEADS;
        if row < TOKENS * HEADS && of_token < step.n_tokens {
            let out = (of_token * step.n_splits + split) * N_HEAD + first_head + row % HEADS;
            if sum_quad < QUADS {
                part[out * QUADS + sum_quad] = low[i];
            }
            if sum_quad + 16u < QUADS {
                part[out * QUADS + sum_quad + 16u] = high[i];
            }
        }
    }
    if lane < TOKENS * HEADS && token < step.n_tokens {
        part_ml[(token * step.n_splits + split) * N_HEAD + first_head + lane % HEADS] = vec2f(largest, total);
    }
}
