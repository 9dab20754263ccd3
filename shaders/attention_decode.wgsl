// softmax(q · k) v of HEADS query heads that share a KV head, for one token of few, over one
// part of the context, in one pass (online softmax).
//
// A tile of positions has two halves, all of which is on its way from memory at once. Scores: four lanes
// share a position of each half, for all heads. Sums: a lane sums four values of the head, for all heads,
// over every PLACES-th position.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;     // [n_tokens, N_HEAD, HEAD_DIM], scaled and turned
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;     // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;     // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(4) var<storage, read_write> part: array<vec4f>;  // [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(5) var<storage, read_write> part_ml: array<vec2f>; // [n_tokens, n_splits, N_HEAD]: largest score, sum of exp

const LANES: u32 = 4u;
const HALF: u32 = WORKGROUP / LANES; // positions of a tile that are scored at a time
const TILE: u32 = 2u * HALF;
const QUADS: u32 = HEAD_DIM / 4u;
const PLACES: u32 = min(WORKGROUP / QUADS, HALF); // positions of which values are summed at a time
const VECTORS: u32 = select(HEAD_DIM / 4u, HEAD_DIM / 8u, KV_F16); // vec4u in a key
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;
const V_STEPS: u32 = (HALF + PLACES - 1u) / PLACES;

var<workgroup> wq: array<vec4f, HEADS * QUADS>;
var<workgroup> weights: array<vec4f, TILE>;    // by head
var<workgroup> placed: array<vec4f, WORKGROUP>; // of one head, what each place summed

// What a lane takes of half a tile: its part of a key, and of every PLACES-th position's values.
struct Half {
    keys: array<vec4u, STEPS>,
    values: array<vec4f, V_STEPS>,
}

fn load(first: u32, end: u32, head_kv: u32, lane: u32) -> Half {
    var half: Half;
    let key = (min(first + lane / LANES, end - 1u) * N_HEAD_KV + head_kv) * VECTORS;
    for (var i = 0u; i < STEPS; i++) {
        half.keys[i] = k_cache[key + min(i * LANES + lane % LANES, VECTORS - 1u)];
    }
    for (var i = 0u; i < V_STEPS; i++) {
        half.values[i] = value(min(first + i * PLACES + lane / QUADS, end - 1u), head_kv, lane % QUADS);
    }
    return half;
}

fn value(position: u32, head_kv: u32, quad: u32) -> vec4f {
    let at = (position * N_HEAD_KV + head_kv) * QUADS + quad;
    if KV_F16 {
        let words = v_cache[at];
        return vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
    }
    return bitcast<vec4f>(vec4u(v_cache[2u * at], v_cache[2u * at + 1u]));
}

fn dot_key(query: u32, words: vec4u) -> f32 {
    if KV_F16 {
        return dot(wq[query], vec4f(unpack2x16float(words.x), unpack2x16float(words.y)))
            + dot(wq[query + 1u], vec4f(unpack2x16float(words.z), unpack2x16float(words.w)));
    }
    return dot(wq[query], bitcast<vec4f>(words));
}

// The lane's position's scores, by head. Called by the whole workgroup.
fn scores(half: Half, lane: u32) -> vec4f {
    var score = vec4f();
    for (var i = 0u; i < STEPS; i++) {
        let vector = i * LANES + lane % LANES;
        let inside = vector < VECTORS;
        let query = min(vector, VECTORS - 1u) * (QUADS / VECTORS);
        let words = select(vec4u(), half.keys[i], inside);
        score.x += dot_key(query, words);
        if HEADS > 1u {
            score.y += dot_key(QUADS + query, words);
        }
        if HEADS > 2u {
            score.z += dot_key(2u * QUADS + query, words);
        }
        if HEADS > 3u {
            score.w += dot_key(3u * QUADS + query, words);
        }
    }
    return lanes_sum_vec4f(lane, score);
}

struct Sums {
    weight: vec4f,        // by head
    value: array<vec4f, 4>, // of each head
}

fn weighed(sums: Sums, half: Half, first: u32, lane: u32) -> Sums {
    var v = sums;
    let place = lane / QUADS;
    for (var i = 0u; i < V_STEPS; i++) {
        let at = i * PLACES + place;
        let inside = at < HALF && place < PLACES;
        let weight = select(vec4f(), weights[first + min(at, HALF - 1u)], inside);
        v.weight += weight;
        v.value[0] += weight.x * half.values[i];
        v.value[1] += weight.y * half.values[i];
        v.value[2] += weight.z * half.values[i];
        v.value[3] += weight.w * half.values[i];
    }
    return v;
}

// Stores a head's output, of which each lane has what its place summed.
fn store(lane: u32, head: u32, sum: vec4f) {
    workgroupBarrier();
    placed[lane] = sum;
    workgroupBarrier();
    if lane < QUADS {
        var v = vec4f();
        for (var place = 0u; place < PLACES; place++) {
            v += placed[place * QUADS + lane];
        }
        part[head * QUADS + lane] = v;
    }
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

    for (var i = lane; i < HEADS * QUADS; i += WORKGROUP) {
        wq[i] = queries[(token * N_HEAD + first_head) * QUADS + i];
    }
    // As many tiles for every workgroup of the step, because a barrier's loop must be uniform in
    // the browser's eyes; a tile that begins after `end` counts nothing.
    let tiles = (min(step.split_len, step.pos + step.n_tokens) + TILE - 1u) / TILE;
    var largest = vec4f(-1e30);
    var sums = Sums();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        let both = first + HALF < end;
        let near = load(first, end, head_kv, lane);
        var far: Half;
        if both {
            far = load(first + HALF, end, head_kv, lane);
        }
        workgroupBarrier();
        let position = first + lane / LANES;
        let score_near = select(vec4f(-1e30), scores(near, lane), position < end);
        var score_far = vec4f(-1e30);
        if both {
            score_far = select(vec4f(-1e30), scores(far, lane), position + HALF < end);
        }
        let tile_largest = max(largest, group_max_vec4f(lane, max(score_near, score_far)));
        if lane % LANES == 0u {
            weights[lane / LANES] = select(vec4f(), exp(score_near - tile_largest), position < end);
        } else if lane % LANES == 1u {
            let weight = exp(score_far - tile_largest);
            weights[HALF + lane / LANES] = select(vec4f(), weight, position + HALF < end);
        }
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        sums.weight *= shrink;
        sums.value[0] *= shrink.x;
        sums.value[1] *= shrink.y;
        sums.value[2] *= shrink.z;
        sums.value[3] *= shrink.w;
        workgroupBarrier();
        sums = weighed(sums, near, 0u, lane);
        if both {
            sums = weighed(sums, far, HALF, lane);
        }
    }
    workgroupBarrier();
    if lane % QUADS == 0u && lane / QUADS < PLACES {
        weights[lane / QUADS] = sums.weight; // they are of no more use
    }
    let head = (token * step.n_splits + split) * N_HEAD + first_head;
    store(lane, head, sums.value[0]);
    if HEADS > 1u {
        store(lane, head + 1u, sums.value[1]);
    }
    if HEADS > 2u {
        store(lane, head + 2u, sums.value[2]);
    }
    if HEADS > 3u {
        store(lane, head + 3u, sums.value[3]);
    }
    if lane < HEADS {
        var v = 0.0;
        for (var place = 0u; place < PLACES; place++) {
            v += weights[place][lane];
        }
        part_ml[head + lane] = vec2f(largest[lane], v);
    }
}
