// softmax(q · k) v for one of a few tokens, over one split of the context. A workgroup takes HEADS
// query heads that share a KV head, 1 or 2, and reads the split once (online softmax). With
// ONE_TILE no split is longer than a tile.
//
// Scores: LANES lanes share EACH positions. They score them for all heads, and read the queries
// once. Sums: a lane sums four values of each head, over every V_TEAMS-th position of a tile.
//
// The kernel includes cached_value.wgsl. It declares
// - step; k_cache, `array<vec4u>`, and v_cache, `array<vec2u>`, both [positions, KV_ROW];
// - partial_sums, `array<vec4f>` [n_tokens, n_splits, N_HEAD, HEAD_DIM], not normalised;
// - partial_max_total, `array<vec2f>` [n_tokens, n_splits, N_HEAD]: largest score, sum of exp;
// - make_queries(lane, token, first_head, head_kv, row), which fills wq. The whole workgroup calls
//   it while the first keys and values are loaded;
// - store_newest(lane, first_head, head_kv, row), called in the split that has the token's
//   position;
// - key_words(words, vector, is_newest) and value_of(v, quad, is_newest), which return the loaded
//   values. For the token's own position the kernel may return others.

const_assert HEADS <= 2u; // the components of a vec2f

const TEAMS: u32 = WORKGROUP / LANES;
const TILE: u32 = EACH * TEAMS; // positions of a tile
const QUADS: u32 = HEAD_DIM / 4u;
const V_TEAMS: u32 = min(WORKGROUP / QUADS, TEAMS); // positions whose values are summed at a time
const VECTORS: u32 = HEAD_WORDS / 4u; // vec4u of a key
const MORE: u32 = QUADS / VECTORS - 1u; // query vectors for each key vector, minus one
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;
const V_STEPS: u32 = (TILE + V_TEAMS - 1u) / V_TEAMS;

var<workgroup> wq: array<vec4f, HEADS * QUADS>;
var<workgroup> weights: array<vec2f, TILE>;            // a component for each head
var<workgroup> sums: array<vec4f, HEADS * WORKGROUP>; // one for each head and lane

// The product of a vector of a key with the vectors of the query for the same values, which are
// one, two or four. The caller loads the query's vectors. Browsers check every index whose range
// they do not know, and they never know the range of a parameter.
fn dot_key(words: vec4u, q0: vec4f, q1: vec4f, q2: vec4f, q3: vec4f) -> f32 {
    if KV_BITS == 32u {
        return dot(q0, bitcast<vec4f>(words));
    }
    if KV_BITS == 16u {
        return dot(q0, four_f16(words.xy)) + dot(q1, four_f16(words.zw));
    }
    return dot(q0, vec4f(unpack4xI8(words.x)))
        + dot(q1, vec4f(unpack4xI8(words.y)))
        + dot(q2, vec4f(unpack4xI8(words.z)))
        + dot(q3, vec4f(unpack4xI8(words.w)));
}

fn key_scale(position: u32, head_kv: u32) -> f32 {
    if KV_BITS == 8u {
        let at = FIRST_SCALE + head_kv;
        return bitcast<f32>(k_cache[position * (KV_ROW / 4u) + at / 4u][at % 4u]);
    }
    return 1.0;
}

// For each head, the sum over the lanes of a position, and the largest value of the workgroup. If
// there is only one head, lanes exchange nothing for a second one.
fn heads_sum(lane: u32, v: vec2f) -> vec2f {
    if HEADS == 1u {
        return vec2f(lanes_sum_f32(lane, v.x));
    }
    return lanes_sum_vec2f(lane, v);
}

fn heads_max(lane: u32, v: vec2f) -> vec2f {
    if HEADS == 1u {
        return vec2f(group_max_f32(lane, v.x));
    }
    return group_max_vec2f(lane, v);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first_head = group.x * HEADS;
    let head_kv = first_head / (N_HEAD / N_HEAD_KV);
    let split = group.y;
    let token = group.z;
    let row = step.rows[token];
    let start = split * row.split_len;
    // If the token sees nothing of this split, it is at most `start`.
    let end = min(row.pos + 1u, start + row.split_len);
    let quad = lane % QUADS;
    let v_team = lane / QUADS;

    // Every split runs the same number of tiles. A tile that begins after `end` adds nothing.
    let tiles = select((min(row.split_len, row.pos + 1u) + TILE - 1u) / TILE, 1u, ONE_TILE);
    var largest = vec2f(-1e30); // a component for each head
    var total = vec2f();
    var sum0 = vec4f();
    var sum1 = vec4f();
    for (var tile = 0u; tile < tiles; tile++) {
        let first = start + tile * TILE;
        // Keys and values are loaded now, so that the loads overlap with computing the weights.
        let position = first + lane / LANES; // and the position TEAMS after it
        var words: array<vec4u, EACH * STEPS>;
        var scales: array<f32, EACH>;
        for (var n = 0u; n < EACH; n++) {
            let of_key = row.first + min(position + n * TEAMS, end - 1u);
            let key = of_key * (KV_ROW / 4u) + head_kv * VECTORS;
            scales[n] = key_scale(of_key, head_kv);
            for (var i = 0u; i < STEPS; i++) {
                words[n * STEPS + i] = k_cache[key + min(i * LANES + lane % LANES, VECTORS - 1u)];
            }
        }
        var values: array<vec4f, V_STEPS>;
        for (var i = 0u; i < V_STEPS; i++) {
            let of_value = row.first + min(first + i * V_TEAMS + v_team, end - 1u);
            values[i] = value(of_value, head_kv, quad);
        }
        if tile == 0u {
            make_queries(lane, token, first_head, head_kv, row);
        }
        workgroupBarrier();
        if tile == 0u && start <= row.pos && row.pos < end {
            store_newest(lane, first_head, head_kv, row);
        }
        var score: array<vec2f, EACH>;
        for (var i = 0u; i < STEPS; i++) {
            let vector = i * LANES + lane % LANES;
            let inside = vector < VECTORS;
            let q0 = min(vector, VECTORS - 1u) * (1u + MORE);
            let q1 = q0 + min(1u, MORE);
            let q2 = q0 + min(2u, MORE);
            let q3 = q0 + MORE;
            for (var n = 0u; n < EACH; n++) {
                let is_newest = min(position + n * TEAMS, end - 1u) == row.pos;
                let found = key_words(words[n * STEPS + i], min(vector, VECTORS - 1u), is_newest);
                let key = select(vec4u(), found, inside);
                score[n].x += dot_key(key, wq[q0], wq[q1], wq[q2], wq[q3]);
                if HEADS > 1u {
                    score[n].y += dot_key(
                        key,
                        wq[QUADS + q0],
                        wq[QUADS + q1],
                        wq[QUADS + q2],
                        wq[QUADS + q3],
                    );
                }
            }
        }
        var tile_largest = vec2f(-1e30);
        for (var n = 0u; n < EACH; n++) {
            let sum = heads_sum(lane, score[n]) * scales[n];
            score[n] = select(vec2f(-1e30), sum, position + n * TEAMS < end);
            tile_largest = max(tile_largest, score[n]);
        }
        tile_largest = max(largest, heads_max(lane, tile_largest));
        for (var n = 0u; n < EACH; n++) {
            if lane % LANES == n {
                let weight = exp(score[n] - tile_largest);
                weights[n * TEAMS + lane / LANES] =
                    select(vec2f(), weight, position + n * TEAMS < end);
            }
        }
        let shrink = exp(largest - tile_largest);
        largest = tile_largest;
        total *= shrink;
        sum0 *= shrink.x;
        sum1 *= shrink.y;
        workgroupBarrier();
        for (var i = 0u; i < V_STEPS; i++) {
            let at = i * V_TEAMS + v_team;
            let weight =
                select(vec2f(), weights[min(at, TILE - 1u)], at < TILE && v_team < V_TEAMS);
            let v = value_of(values[i], quad, min(first + at, end - 1u) == row.pos);
            total += weight;
            sum0 += weight.x * v;
            sum1 += weight.y * v;
        }
    }
    workgroupBarrier();
    sums[lane] = sum0;
    if HEADS > 1u {
        sums[WORKGROUP + lane] = sum1;
    }
    if quad == 0u && v_team < V_TEAMS {
        weights[v_team] = total; // the weights are no longer needed
    }
    workgroupBarrier();
    let head = (token * step.n_splits + split) * N_HEAD + first_head;
    if lane < HEADS * QUADS {
        let first_sum = lane / QUADS * WORKGROUP + lane % QUADS;
        var v = vec4f();
        for (var v_team = 0u; v_team < V_TEAMS; v_team++) {
            v += sums[first_sum + v_team * QUADS];
        }
        partial_sums[head * QUADS + lane] = v;
    }
    if lane < HEADS {
        var v = 0.0;
        for (var v_team = 0u; v_team < V_TEAMS; v_team++) {
            v += weights[v_team][lane];
        }
        partial_max_total[head + lane] = vec2f(largest[lane], v);
    }
}
