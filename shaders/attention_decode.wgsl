// softmax(q · k) v of HEADS query heads that share a KV head, for one token of few, over one
// part of the context, in one pass (online softmax).
//
// Scores: four lanes share EACH positions, for all heads, and read the queries once for them. Sums: a lane
// sums four values of the head, for all heads, over every PLACES-th position of a tile.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;     // [n_tokens, N_HEAD, HEAD_DIM], scaled and turned
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;     // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;     // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(4) var<storage, read_write> part: array<vec4f>;  // [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(5) var<storage, read_write> part_ml: array<vec2f>; // [n_tokens, n_splits, N_HEAD]: largest score, sum of exp

const LANES: u32 = 4u;
const EACH: u32 = 2u;
const TURN: u32 = WORKGROUP / LANES;
const TILE: u32 = EACH * TURN; // positions at a time
const QUADS: u32 = HEAD_DIM / 4u;
const PLACES: u32 = min(WORKGROUP / QUADS, TURN); // positions of which values are summed at a time
const VECTORS: u32 = select(HEAD_DIM / 4u, HEAD_DIM / 8u, KV_F16); // vec4u in a key
const MORE: u32 = QUADS / VECTORS - 1u; // vectors of a query that one of a key meets, beside the first
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;
const V_STEPS: u32 = (TILE + PLACES - 1u) / PLACES;

var<workgroup> wq: array<vec4f, HEADS * QUADS>;
var<workgroup> weights: array<vec2f, TILE>;            // by head
var<workgroup> sums: array<vec4f, HEADS * WORKGROUP>; // by head and lane

// Part of a key times the one or two vectors of the query that it meets. They are not looked up here, because
// browsers check an index whose range they do not know, and that of a parameter they do not.
fn dot_key(words: vec4u, q0: vec4f, q1: vec4f) -> f32 {
    if KV_F16 {
        return dot(q0, vec4f(unpack2x16float(words.x), unpack2x16float(words.y)))
            + dot(q1, vec4f(unpack2x16float(words.z), unpack2x16float(words.w)));
    }
    return dot(q0, bitcast<vec4f>(words));
}

fn value(position: u32, head_kv: u32, quad: u32) -> vec4f {
    let at = (position * N_HEAD_KV + head_kv) * QUADS + quad;
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
    // Before `start` for a token that sees nothing of this part.
    let end = min(step.pos + token + 1u, start + step.split_len);
    let quad = lane % QUADS;
    let place = lane / QUADS;

    // There are more threads than vectors of them.
    if lane < HEADS * QUADS {
        wq[lane] = queries[(token * N_HEAD + first_head) * QUADS + lane];
    }
    // As many tiles for every workgroup of the step, because a barrier's loop must be uniform in
    // the browser's eyes; a tile that begins after `end` counts nothing.
    let tiles = (min(step.split_len, step.pos + step.n_tokens) + TILE - 1u) / TILE;
    var largest = vec2f(-1e30); // by head
    var total = vec2f();
    var sum0 = vec4f();
    var sum1 = vec4f();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        // What does not depend on the weights is on its way while they are made.
        let position = first + lane / LANES; // and TURN after it
        var words: array<vec4u, EACH * STEPS>;
        for (var n = 0u; n < EACH; n++) {
            let key = (min(position + n * TURN, end - 1u) * N_HEAD_KV + head_kv) * VECTORS;
            for (var i = 0u; i < STEPS; i++) {
                words[n * STEPS + i] = k_cache[key + min(i * LANES + lane % LANES, VECTORS - 1u)];
            }
        }
        var values: array<vec4f, V_STEPS>;
        for (var i = 0u; i < V_STEPS; i++) {
            values[i] = value(min(first + i * PLACES + place, end - 1u), head_kv, quad);
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
            score[n] = select(vec2f(-1e30), sum, position + n * TURN < end);
            tile_largest = max(tile_largest, score[n]);
        }
        tile_largest = max(largest, group_max_vec2f(lane, tile_largest));
        for (var n = 0u; n < EACH; n++) {
            if lane % LANES == n {
                let weight = exp(score[n] - tile_largest);
                weights[n * TURN + lane / LANES] = select(vec2f(), weight, position + n * TURN < end);
            }
        }
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        total *= shrink;
        sum0 *= shrink.x;
        sum1 *= shrink.y;
        workgroupBarrier();
        for (var i = 0u; i < V_STEPS; i++) {
            let at = i * PLACES + place;
            let weight = select(vec2f(), weights[min(at, TILE - 1u)], at < TILE && place < PLACES);
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
    if quad == 0u && place < PLACES {
        weights[place] = total; // they are of no more use
    }
    workgroupBarrier();
    let head = (token * step.n_splits + split) * N_HEAD + first_head;
    if lane < HEADS * QUADS {
        let first_sum = lane / QUADS * WORKGROUP + lane % QUADS;
        var v = vec4f();
        for (var place = 0u; place < PLACES; place++) {
            v += sums[first_sum + place * QUADS];
        }
        part[head * QUADS + lane] = v;
    }
    if lane < HEADS {
        var v = 0.0;
        for (var place = 0u; place < PLACES; place++) {
            v += weights[place][lane];
        }
        part_ml[head + lane] = vec2f(largest[lane], v);
    }
}
