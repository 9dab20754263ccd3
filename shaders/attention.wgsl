// softmax(q · k) v of HEADS query heads that share a KV head, for one token, over one part of the
// context, in one pass (online softmax). The parts are put together by attention_merge.
//
// A thread scores one position for one head, then sums two values of the head over the tile.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;           // [n_tokens, N_HEAD, HEAD_DIM], scaled and turned
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;     // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(3) var<storage, read> v_cache: array<u32>;       // [n_ctx, N_HEAD_KV, HEAD_DIM]
@group(0) @binding(4) var<storage, read_write> part: array<vec2f>;  // [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(5) var<storage, read_write> part_ml: array<vec2f>; // [n_tokens, n_splits, N_HEAD]: largest score, sum of exp

const TILE: u32 = HEAD_DIM / 2u; // positions at a time, as many as a head has pairs of values
const WORKGROUP: u32 = HEADS * TILE;
const VECTORS: u32 = select(HEAD_DIM / 4u, HEAD_DIM / 8u, KV_F16); // vec4u in a key

var<workgroup> wq: array<vec4f, HEADS * HEAD_DIM / 4u>;
var<workgroup> scores: array<f32, WORKGROUP>;
var<workgroup> weights: array<f32, WORKGROUP>;

// What vector `i` of a key adds to its score; past the key there is nothing to add.
fn dot_vector(query: u32, i: u32, words: vec4u) -> vec4f {
    var sum = vec4f();
    if KV_F16 {
        let at = query + 2u * min(i, VECTORS - 1u);
        sum = wq[at] * vec4f(unpack2x16float(words.x), unpack2x16float(words.y))
            + wq[at + 1u] * vec4f(unpack2x16float(words.z), unpack2x16float(words.w));
    } else {
        sum = wq[query + min(i, VECTORS - 1u)] * bitcast<vec4f>(words);
    }
    return select(vec4f(), sum, i < VECTORS);
}

fn score(head: u32, position: u32, head_kv: u32) -> f32 {
    let key = (position * N_HEAD_KV + head_kv) * VECTORS;
    let query = head * (HEAD_DIM / 4u);
    let last = VECTORS - 1u;
    var sum = vec4f();
    // Eight loads at once, see gemv_i2s.wgsl.
    for (var i = 0u; i < VECTORS; i += 8u) {
        let w0 = k_cache[key + i];
        let w1 = k_cache[key + min(i + 1u, last)];
        let w2 = k_cache[key + min(i + 2u, last)];
        let w3 = k_cache[key + min(i + 3u, last)];
        let w4 = k_cache[key + min(i + 4u, last)];
        let w5 = k_cache[key + min(i + 5u, last)];
        let w6 = k_cache[key + min(i + 6u, last)];
        let w7 = k_cache[key + min(i + 7u, last)];
        sum += dot_vector(query, i, w0) + dot_vector(query, i + 1u, w1)
            + dot_vector(query, i + 2u, w2) + dot_vector(query, i + 3u, w3)
            + dot_vector(query, i + 4u, w4) + dot_vector(query, i + 5u, w5)
            + dot_vector(query, i + 6u, w6) + dot_vector(query, i + 7u, w7);
    }
    return sum.x + sum.y + sum.z + sum.w;
}

fn value(position: u32, head_kv: u32, pair: u32) -> vec2f {
    let at = (position * N_HEAD_KV + head_kv) * TILE + pair;
    if KV_F16 {
        return unpack2x16float(v_cache[at]);
    }
    return bitcast<vec2f>(vec2u(v_cache[2u * at], v_cache[2u * at + 1u]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x * HEADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let token = group.y;
    let split = group.z;
    let head = lane / TILE; // of HEADS; this lane's for scores as well as for sums
    let slot = lane % TILE; // the position in the tile it scores, the pair of values it sums

    for (var i = lane; i < HEADS * HEAD_DIM / 4u; i += WORKGROUP) {
        wq[i] = q[(token * N_HEAD + first_head) * (HEAD_DIM / 4u) + i];
    }
    let start = split * step.split_len;
    let end = min(step.pos + token + 1u, start + step.split_len);
    // As many tiles for every workgroup of the step, because a barrier's loop must be uniform in
    // the browser's eyes; a split that begins after `end` scores nothing.
    let tiles = (min(step.split_len, step.pos + step.n_tokens) + TILE - 1u) / TILE;
    var largest = -1e30;
    var total = 0.0;
    var sum = vec2f();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        workgroupBarrier();
        var s = -1e30;
        if first + slot < end {
            s = score(head, first + slot, head_kv);
        }
        scores[lane] = s;
        workgroupBarrier();
        var tile_largest = largest;
        for (var i = 0u; i < TILE; i++) {
            tile_largest = max(tile_largest, scores[head * TILE + i]);
        }
        weights[lane] = select(0.0, exp(s - tile_largest), first + slot < end);
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        total *= shrink;
        sum *= shrink;
        workgroupBarrier();
        // All of the tile, eight loads at once; past the end the weight is zero, and the value one
        // that is there.
        let last = max(end, start + 1u) - 1u;
        for (var i = 0u; i < TILE; i += 8u) {
            let at = head * TILE + i;
            let v0 = value(min(first + i, last), head_kv, slot);
            let v1 = value(min(first + i + 1u, last), head_kv, slot);
            let v2 = value(min(first + i + 2u, last), head_kv, slot);
            let v3 = value(min(first + i + 3u, last), head_kv, slot);
            let v4 = value(min(first + i + 4u, last), head_kv, slot);
            let v5 = value(min(first + i + 5u, last), head_kv, slot);
            let v6 = value(min(first + i + 6u, last), head_kv, slot);
            let v7 = value(min(first + i + 7u, last), head_kv, slot);
            let a = vec4f(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
            let b = vec4f(weights[at + 4u], weights[at + 5u], weights[at + 6u], weights[at + 7u]);
            total += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
            sum += a.x * v0 + a.y * v1 + a.z * v2 + a.w * v3
                + b.x * v4 + b.y * v5 + b.z * v6 + b.w * v7;
        }
    }
    let out = (token * step.n_splits + split) * N_HEAD + first_head + head;
    part[out * TILE + slot] = sum;
    if slot == 0u {
        part_ml[out] = vec2f(largest, total);
    }
}
