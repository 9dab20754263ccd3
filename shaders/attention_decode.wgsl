// softmax(q · k) v of 1 or 2 (HEADS) query heads that share a KV head, for one of a few tokens,
// over one split of the context. The split is read once (online softmax).
//
// Scores: LANES lanes share EACH positions. They score them for all heads and read the queries
// once.
// Sums: a lane sums four values of each head, over every V_SLOTS-th position of a tile.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_HEAD, HEAD_DIM], rotated and scaled
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;
// [positions, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;
// [positions, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(4) var<storage, read_write> partial_sums: array<vec4f>;
// [n_tokens, n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(5) var<storage, read_write> partial_max_total: array<vec2f>;

const_assert HEADS <= 2u; // the components of a vec2f

const LANES: u32 = 4u;
const EACH: u32 = select(2u, 1u, HEAD_DIM > 128u); // longer heads take more registers
const SLOTS: u32 = WORKGROUP / LANES;
const TILE: u32 = EACH * SLOTS; // positions at a time
const QUADS: u32 = HEAD_DIM / 4u;
const V_SLOTS: u32 = min(WORKGROUP / QUADS, SLOTS); // positions whose values are summed at a time
const VECTORS: u32 = select(HEAD_DIM / 4u, HEAD_DIM / 8u, KV_F16); // vec4u in a key
const MORE: u32 = QUADS / VECTORS - 1u; // query vectors for one key vector, less one
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;
const V_STEPS: u32 = (TILE + V_SLOTS - 1u) / V_SLOTS;

var<workgroup> wq: array<vec4f, HEADS * QUADS>;
var<workgroup> weights: array<vec2f, TILE>;            // by head
var<workgroup> sums: array<vec4f, HEADS * WORKGROUP>; // by head and lane

// A vector of a key times the one or two vectors of the query at the same values. The caller looks
// these up: browsers check every index whose range they do not know, and they never know the range
// of a parameter.
fn dot_key(words: vec4u, q0: vec4f, q1: vec4f) -> f32 {
    if KV_F16 {
        return dot(q0, vec4f(unpack2x16float(words.x), unpack2x16float(words.y)))
            + dot(q1, vec4f(unpack2x16float(words.z), unpack2x16float(words.w)));
    }
    return dot(q0, bitcast<vec4f>(words));
}

fn value(position: u32, head_kv: u32, quad: u32) -> vec4f {
    let at = ((step.first + position) * N_HEAD_KV + head_kv) * QUADS + quad;
    if KV_F16 {
        let words = v_cache[at];
        return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
    }
    return bitcast<vec4f>(vec4u(v_cache[2u * at], v_cache[2u * at + 1u]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x * HEADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let split = group.y;
    let token = group.z;
    let start = split * step.split_len;
    // At most `start` if the token sees nothing of this split.
    let end = min(step.pos + token + 1u, start + step.split_len);
    let quad = lane % QUADS;
    let v_slot = lane / QUADS;

    // There are at least as many threads as vectors.
    if lane < HEADS * QUADS {
        wq[lane] = queries[(token * N_HEAD + first_head) * QUADS + lane];
    }
    // Every workgroup of the step runs the same number of tiles, because browsers demand that a
    // loop with a barrier is uniform. A tile that begins after `end` adds nothing.
    let tiles = (min(step.split_len, step.pos + step.n_tokens) + TILE - 1u) / TILE;
    var largest = vec2f(-1e30); // by head
    var total = vec2f();
    var sum0 = vec4f();
    var sum1 = vec4f();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        // Load the keys and values now: the loads overlap with computing the weights.
        let position = first + lane / LANES; // and the one SLOTS after it
        var words: array<vec4u, EACH * STEPS>;
        for (var n = 0u; n < EACH; n++) {
            let at = step.first + min(position + n * SLOTS, end - 1u);
            let key = (at * N_HEAD_KV + head_kv) * VECTORS;
            for (var i = 0u; i < STEPS; i++) {
                words[n * STEPS + i] = k_cache[key + min(i * LANES + lane % LANES, VECTORS - 1u)];
            }
        }
        var values: array<vec4f, V_STEPS>;
        for (var i = 0u; i < V_STEPS; i++) {
            values[i] = value(min(first + i * V_SLOTS + v_slot, end - 1u), head_kv, quad);
        }
        workgroupBarrier();
        var score: array<vec2f, EACH>;
        for (var i = 0u; i < STEPS; i++) {
            let vector = i * LANES + lane % LANES;
            let inside = vector < VECTORS;
            let query = min(vector, VECTORS - 1u) * (1u + MORE);
            for (var n = 0u; n < EACH; n++) {
                let key_words = select(vec4u(), words[n * STEPS + i], inside);
                score[n].x += dot_key(key_words, wq[query], wq[query + MORE]);
                if HEADS > 1u {
                    score[n].y += dot_key(key_words, wq[QUADS + query], wq[QUADS + query + MORE]);
                }
            }
        }
        var tile_largest = vec2f(-1e30);
        for (var n = 0u; n < EACH; n++) {
            let sum = lanes_sum_vec2f(lane, score[n]);
            score[n] = select(vec2f(-1e30), sum, position + n * SLOTS < end);
            tile_largest = max(tile_largest, score[n]);
        }
        tile_largest = max(largest, group_max_vec2f(lane, tile_largest));
        for (var n = 0u; n < EACH; n++) {
            if lane % LANES == n {
                let weight = exp(score[n] - tile_largest);
                weights[n * SLOTS + lane / LANES] =
                    select(vec2f(), weight, position + n * SLOTS < end);
            }
        }
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        total *= shrink;
        sum0 *= shrink.x;
        sum1 *= shrink.y;
        workgroupBarrier();
        for (var i = 0u; i < V_STEPS; i++) {
            let at = i * V_SLOTS + v_slot;
            let weight =
                select(vec2f(), weights[min(at, TILE - 1u)], at < TILE && v_slot < V_SLOTS);
            total += weight;
            sum0 += weight.x * values[i];
            sum1 += weight.y * values[i];
        }
    }
    workgroupBarrier();
    sums[lane] = sum0;
    if HEADS > 1u {
        sums[WORKGROUP + lane] = sum1;
    }
    if quad == 0u && v_slot < V_SLOTS {
        weights[v_slot] = total; // the weights are no longer needed
    }
    workgroupBarrier();
    let head = (token * step.n_splits + split) * N_HEAD + first_head;
    if lane < HEADS * QUADS {
        let first_sum = lane / QUADS * WORKGROUP + lane % QUADS;
        var v = vec4f();
        for (var v_slot = 0u; v_slot < V_SLOTS; v_slot++) {
            v += sums[first_sum + v_slot * QUADS];
        }
        partial_sums[head * QUADS + lane] = v;
    }
    if lane < HEADS {
        var v = 0.0;
        for (var v_slot = 0u; v_slot < V_SLOTS; v_slot++) {
            v += weights[v_slot][lane];
        }
        partial_max_total[head + lane] = vec2f(largest[lane], v);
    }
}
