// softmax(q · k) v for one token, over one split of the context. A workgroup takes HEADS query
// heads that share a KV head, and reads the split once (online softmax). attention_merge merges the
// splits.
//
// A thread scores one position for one head. Then it sums two values of the head over the TILE
// positions of a tile. TILE is the number of pairs of values in a head.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_HEAD, HEAD_DIM], rotated and scaled
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;
// [positions, KV_ROW]
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;
// [positions, KV_ROW]
@group(0) @binding(3) var<storage, read> v_cache: array<u32>;
// [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised
@group(0) @binding(4) var<storage, read_write> partial_sums: array<vec2f>;
// [n_tokens, n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(5) var<storage, read_write> partial_max_total: array<vec2f>;

const VECTORS: u32 = HEAD_WORDS / 4u; // vec4u of a key

var<workgroup> wq: array<vec4f, HEADS * HEAD_DIM / 4u>;
var<workgroup> scores: array<f32, WORKGROUP>;
var<workgroup> weights: array<f32, WORKGROUP>;

fn score(head: u32, position: u32, head_kv: u32) -> f32 {
    let row = position * (KV_ROW / 4u);
    let key = row + head_kv * VECTORS;
    let query = head * (HEAD_DIM / 4u);
    var sum = vec4f();
    for (var i = 0u; i < VECTORS; i++) {
        let words = k_cache[key + i];
        if KV_BITS == 32u {
            sum += wq[query + i] * bitcast<vec4f>(words);
        } else if KV_BITS == 16u {
            sum += wq[query + 2u * i] * four_f16(words.xy);
            sum += wq[query + 2u * i + 1u] * four_f16(words.zw);
        } else {
            for (var n = 0u; n < 4u; n++) {
                sum += wq[query + 4u * i + n] * vec4f(unpack4xI8(words[n]));
            }
        }
    }
    let score = sum.x + sum.y + sum.z + sum.w;
    if KV_BITS == 8u {
        let scale = FIRST_SCALE + head_kv;
        return score * bitcast<f32>(k_cache[row + scale / 4u][scale % 4u]);
    }
    return score;
}

fn value(position: u32, head_kv: u32, pair: u32) -> vec2f {
    let row = position * KV_ROW;
    let first = row + head_kv * HEAD_WORDS;
    if KV_BITS == 32u {
        return bitcast<vec2f>(vec2u(v_cache[first + 2u * pair], v_cache[first + 2u * pair + 1u]));
    }
    if KV_BITS == 16u {
        return unpack2x16float(v_cache[first + pair]);
    }
    let four = vec4f(unpack4xI8(v_cache[first + pair / 2u]));
    let scale = bitcast<f32>(v_cache[row + FIRST_SCALE + head_kv]);
    return select(four.xy, four.zw, pair % 2u == 1u) * scale;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x * HEADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let token = step.row + group.y;
    let split = group.z;
    let head = lane / TILE; // the number of the head within the workgroup
    // The position of the tile to score, and the pair of values to sum.
    let nth = lane % TILE;

    // A thread loads four values. There is one thread for every two values, so half of the threads
    // load.
    if lane < HEADS * HEAD_DIM / 4u {
        wq[lane] = queries[(token * N_HEAD + first_head) * (HEAD_DIM / 4u) + lane];
    }
    let row = row_of(token);
    let start = split * row.split_len;
    let end = min(row.pos + 1u, start + row.split_len);
    // Every split runs the same number of tiles. If a split begins after `end`, it scores nothing.
    let tiles = (min(row.split_len, row.pos + 1u) + TILE - 1u) / TILE;
    var largest = -1e30;
    var total = 0.0;
    var sum = vec2f();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        workgroupBarrier();
        var s = -1e30;
        if first + nth < end {
            s = score(head, row.first + first + nth, head_kv);
        }
        scores[lane] = s;
        workgroupBarrier();
        var tile_largest = largest;
        for (var i = 0u; i < TILE; i++) {
            tile_largest = max(tile_largest, scores[head * TILE + i]);
        }
        weights[lane] = select(0.0, exp(s - tile_largest), first + nth < end);
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        total *= shrink;
        sum *= shrink;
        workgroupBarrier();
        // The loop always sums a whole tile. So it is unrolled, and its loads overlap. Past the
        // end, the weight is zero, and the value is that of the last position.
        let last = max(end, start + 1u) - 1u;
        for (var i = 0u; i < TILE; i++) {
            let weight = weights[head * TILE + i];
            total += weight;
            sum += weight * value(row.first + min(first + i, last), head_kv, nth);
        }
    }
    let out = (token * step.n_splits + split) * N_HEAD + first_head + head;
    partial_sums[out * TILE + nth] = sum;
    if nth == 0u {
        partial_max_total[out] = vec2f(largest, total);
    }
}
