// softmax(q · k) v for many tokens, over one split of the context. The split is read once (online
// softmax). A tile has TOKENS tokens by HEADS query heads that share a KV head, against KEYS
// positions. attention_merge merges the splits.
//
// A row is one head of one token. For the scores, a thread holds 8 rows by 4 keys. For the sums, it
// holds 8 rows by two vectors of a head's values, first over one half of the keys and then over the
// other. Neighbouring threads read vectors of neighbouring rows. The vectors are permuted within
// each row, so that these threads read from different banks of the memory.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_HEAD, HEAD_DIM], rotated and scaled
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;
// [positions, KV_ROW]
@group(0) @binding(2) var<storage, read> k_cache: array<vec2u>;
// [positions, KV_ROW]
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(4) var<storage, read_write> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(5) var<storage, read_write> partial_max_total: array<vec2f>;

const_assert WORKGROUP == 128u && TILE_ROWS == 64u; // 8 by 16 threads, of 8 rows each

// Where tokens of one sequence are, and which of its splits is read.
struct Part {
    pos: u32,
    n_tokens: u32,
    first: u32,
    split_len: u32,
    row: u32,
    split: u32,
}

// If SPANS, all splits of the first span come first, then those of the next.
fn part_of(z: u32) -> Part {
    if SPANS {
        let n = z / step.n_splits;
        let span = step.rows[n];
        let row = step.row + span.token - step.token;
        return Part(span.pos, tokens_of_span(n), span.first, span.split_len, row, z % step.n_splits);
    }
    return Part(step.pos, step.n_tokens, step.first, step.split_len, step.row, z);
}

const KEYS: u32 = 64u;
const HALF: u32 = KEYS / 2u;
const KEY_QUADS: u32 = HALF / 4u; // quads of keys in half of the keys
const QUADS: u32 = HEAD_DIM / 4u; // vectors in a head
const SLICE: u32 = 4u;            // vectors that are multiplied at a time
const SLICES: u32 = (QUADS + SLICE - 1u) / SLICE;
const V_KEYS: u32 = 8u;           // keys whose values are multiplied at a time
// A thread holds two vectors of values. Longer heads take several workgroups, which compute the same
// scores.
const V_QUADS: u32 = min(QUADS, MAX_V_QUADS);
const V_PARTS: u32 = QUADS / V_QUADS;
const_assert QUADS % V_QUADS == 0u && MAX_V_QUADS == 32u;

// Used for one after the other: a slice of queries [TILE_ROWS][SLICE] and of keys [KEYS][SLICE]; the
// factor by which the sums of each row shrink [TILE_ROWS]; values [V_KEYS][V_QUADS].
var<workgroup> tile: array<vec4f, (TILE_ROWS + KEYS) * SLICE>;
var<workgroup> scores: array<vec4f, TILE_ROWS * KEY_QUADS>; // scores of half of the keys, then their exponentials

fn in_tile(row: u32, vector: u32) -> u32 {
    return row * SLICE + (vector ^ ((row / 2u) % SLICE));
}

fn in_scores(row: u32, quad: u32) -> u32 {
    return row * KEY_QUADS + (quad ^ (row % KEY_QUADS));
}

fn key(position: u32, head_kv: u32, four: u32) -> vec4f {
    let at = pair_of(position, head_kv, four);
    if KV_BITS == 32u {
        return bitcast<vec4f>(vec4u(k_cache[at], k_cache[at + 1u]));
    }
    if KV_BITS == 16u {
        return four_f16(k_cache[at]);
    }
    let scale = FIRST_SCALE + head_kv;
    return four_int8(k_cache[at], four)
        * bitcast<f32>(k_cache[position * (KV_ROW / 2u) + scale / 2u][scale % 2u]);
}

// Each product is added to the sum separately, because cards multiply and add in one operation.

fn added(sum: f32, a: vec4f, b: vec4f) -> f32 {
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

fn dots(sum: vec4f, q: vec4f, k0: vec4f, k1: vec4f, k2: vec4f, k3: vec4f) -> vec4f {
    return vec4f(
        added(sum.x, q, k0),
        added(sum.y, q, k1),
        added(sum.z, q, k2),
        added(sum.w, q, k3),
    );
}

fn mix4(sum: vec4f, weights: vec4f, v0: vec4f, v1: vec4f, v2: vec4f, v3: vec4f) -> vec4f {
    return sum + weights.x * v0 + weights.y * v1 + weights.z * v2 + weights.w * v3;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x / V_PARTS * HEADS;
    let first_quad = group.x % V_PARTS * V_QUADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let part = part_of(group.z);
    let first_token = group.y * TOKENS;
    if first_token >= part.n_tokens {
        return; // another span is longer
    }
    let start = part.split * part.split_len;
    let end = min(part.pos + min(first_token + TOKENS, part.n_tokens), start + part.split_len);
    let tiles = (max(end, start) - start + KEYS - 1u) / KEYS;

    let my_row = lane / 16u;  // the thread's first row; it has every 8th row after it too
    let my_quad = lane % 16u; // its quad of keys; later its quads of values, which are this and quad + 16
    // Each of the first TILE_ROWS lanes computes the softmax of one row.
    let token = first_token + lane / HEADS;
    let sees = min(part.pos + token + 1u, end);
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
        var s4 = vec4f();
        var s5 = vec4f();
        var s6 = vec4f();
        var s7 = vec4f();
        for (var slice = 0u; slice < SLICES; slice++) {
            workgroupBarrier();
            let vector = lane % SLICE;
            let quad = slice * SLICE + vector;
            let inside = QUADS % SLICE == 0u || quad < QUADS;
            for (var i = 0u; i < TILE_ROWS * SLICE / WORKGROUP; i++) {
                let row = i * (WORKGROUP / SLICE) + lane / SLICE;
                let of_token = min(first_token + row / HEADS, part.n_tokens - 1u);
                let at = ((part.row + of_token) * N_HEAD + first_head + row % HEADS) * QUADS
                    + min(quad, QUADS - 1u);
                tile[in_tile(row, vector)] = select(vec4f(), queries[at], inside);
            }
            // A thread takes four neighbouring keys, so key 4a + b is in row 16b + a.
            for (var i = 0u; i < KEYS * SLICE / WORKGROUP; i++) {
                let of_key = i * (WORKGROUP / SLICE) + lane / SLICE;
                let position = part.first + min(first + of_key, end - 1u);
                let loaded = key(position, head_kv, min(quad, QUADS - 1u));
                tile[in_tile(TILE_ROWS + of_key % 4u * 16u + of_key / 4u, vector)] =
                    select(vec4f(), loaded, inside);
            }
            workgroupBarrier();
            // The sum over the slice comes first, because one long sum over a row would round too
            // often.
            var p0 = vec4f();
            var p1 = vec4f();
            var p2 = vec4f();
            var p3 = vec4f();
            var p4 = vec4f();
            var p5 = vec4f();
            var p6 = vec4f();
            var p7 = vec4f();
            for (var v = 0u; v < SLICE; v++) {
                let k0 = tile[in_tile(TILE_ROWS + my_quad, v)];
                let k1 = tile[in_tile(TILE_ROWS + 16u + my_quad, v)];
                let k2 = tile[in_tile(TILE_ROWS + 32u + my_quad, v)];
                let k3 = tile[in_tile(TILE_ROWS + 48u + my_quad, v)];
                p0 = dots(p0, tile[in_tile(my_row, v)], k0, k1, k2, k3);
                p1 = dots(p1, tile[in_tile(my_row + 8u, v)], k0, k1, k2, k3);
                p2 = dots(p2, tile[in_tile(my_row + 16u, v)], k0, k1, k2, k3);
                p3 = dots(p3, tile[in_tile(my_row + 24u, v)], k0, k1, k2, k3);
                p4 = dots(p4, tile[in_tile(my_row + 32u, v)], k0, k1, k2, k3);
                p5 = dots(p5, tile[in_tile(my_row + 40u, v)], k0, k1, k2, k3);
                p6 = dots(p6, tile[in_tile(my_row + 48u, v)], k0, k1, k2, k3);
                p7 = dots(p7, tile[in_tile(my_row + 56u, v)], k0, k1, k2, k3);
            }
            s0 += p0;
            s1 += p1;
            s2 += p2;
            s3 += p3;
            s4 += p4;
            s5 += p5;
            s6 += p6;
            s7 += p7;
        }
        for (var half = 0u; half < 2u; half++) {
            let half_first = first + half * HALF;
            workgroupBarrier();
            if my_quad / KEY_QUADS == half {
                scores[in_scores(my_row, my_quad % KEY_QUADS)] = s0;
                scores[in_scores(my_row + 8u, my_quad % KEY_QUADS)] = s1;
                scores[in_scores(my_row + 16u, my_quad % KEY_QUADS)] = s2;
                scores[in_scores(my_row + 24u, my_quad % KEY_QUADS)] = s3;
                scores[in_scores(my_row + 32u, my_quad % KEY_QUADS)] = s4;
                scores[in_scores(my_row + 40u, my_quad % KEY_QUADS)] = s5;
                scores[in_scores(my_row + 48u, my_quad % KEY_QUADS)] = s6;
                scores[in_scores(my_row + 56u, my_quad % KEY_QUADS)] = s7;
            }
            workgroupBarrier();
            if lane < TILE_ROWS {
                var most = vec4f(largest);
                for (var quad = 0u; quad < KEY_QUADS; quad++) {
                    let positions = half_first + 4u * quad + vec4u(0u, 1u, 2u, 3u);
                    let s = scores[in_scores(lane, quad)];
                    most = max(most, select(vec4f(-1e30), s, positions < vec4u(sees)));
                }
                let tile_largest = max(max(most.x, most.y), max(most.z, most.w));
                var sum = vec4f();
                for (var quad = 0u; quad < KEY_QUADS; quad++) {
                    let positions = half_first + 4u * quad + vec4u(0u, 1u, 2u, 3u);
                    let s = scores[in_scores(lane, quad)];
                    let weights = select(vec4f(), exp(s - tile_largest), positions < vec4u(sees));
                    scores[in_scores(lane, quad)] = weights;
                    sum += weights;
                }
                let shrink = exp(largest - tile_largest);
                tile[lane].x = shrink;
                total = total * shrink + sum.x + sum.y + sum.z + sum.w;
                largest = tile_largest;
            }
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let shrink = tile[my_row + 8u * i].x;
                low[i] *= shrink;
                high[i] *= shrink;
            }
            for (var slice = 0u; slice < HALF / V_KEYS; slice++) {
                workgroupBarrier();
                for (var n = 0u; n < (V_KEYS * V_QUADS + WORKGROUP - 1u) / WORKGROUP; n++) {
                    let i = n * WORKGROUP + lane;
                    if i < V_KEYS * V_QUADS {
                        let in_slice = slice * V_KEYS + i / V_QUADS;
                        let position = part.first + min(half_first + in_slice, end - 1u);
                        let quad = first_quad + i % V_QUADS;
                        tile[i] = value(position, head_kv, quad);
                    }
                }
                workgroupBarrier();
                for (var four = 0u; four < V_KEYS / 4u; four++) {
                    let quad = slice * (V_KEYS / 4u) + four;
                    let at = four * 4u * V_QUADS + min(my_quad, V_QUADS - 1u);
                    let a0 = tile[at];
                    let a1 = tile[at + V_QUADS];
                    let a2 = tile[at + 2u * V_QUADS];
                    let a3 = tile[at + 3u * V_QUADS];
                    if V_QUADS > 16u {
                        let at = four * 4u * V_QUADS + min(my_quad + 16u, V_QUADS - 1u);
                        let b0 = tile[at];
                        let b1 = tile[at + V_QUADS];
                        let b2 = tile[at + 2u * V_QUADS];
                        let b3 = tile[at + 3u * V_QUADS];
                        for (var i = 0u; i < 8u; i++) {
                            let weights = scores[in_scores(my_row + 8u * i, quad)];
                            low[i] = mix4(low[i], weights, a0, a1, a2, a3);
                            high[i] = mix4(high[i], weights, b0, b1, b2, b3);
                        }
                    } else {
                        for (var i = 0u; i < 8u; i++) {
                            low[i] = mix4(
                                low[i],
                                scores[in_scores(my_row + 8u * i, quad)],
                                a0,
                                a1,
                                a2,
                                a3,
                            );
                        }
                    }
                }
            }
        }
    }

    for (var i = 0u; i < 8u; i++) {
        let row = my_row + 8u * i;
        let of_token = first_token + row / HEADS;
        if row < TOKENS * HEADS && of_token < part.n_tokens {
            let out = ((part.row + of_token) * step.n_splits + part.split) * N_HEAD + first_head
                + row % HEADS;
            let at = out * QUADS + first_quad + my_quad;
            if my_quad < V_QUADS {
                partial_sums[at] = low[i];
            }
            if my_quad + 16u < V_QUADS {
                partial_sums[at + 16u] = high[i];
            }
        }
    }
    if lane < TOKENS * HEADS && token < part.n_tokens && first_quad == 0u {
        let out = ((part.row + token) * step.n_splits + part.split) * N_HEAD + first_head;
        partial_max_total[out + lane % HEADS] = vec2f(largest, total);
    }
}
