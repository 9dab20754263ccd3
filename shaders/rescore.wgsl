// Finds the best token in each block of rows of up to two shards, see shards.wgsl. It is the token that gemv_lm_head and
// sample_best would find. The approximate ranks rule out most rows. The others are computed again from
// all of their bytes.
//
// A row's rank is within a bound of approx[row]: it has a lower and an upper end. The greatest rank is
// at least every lead's lower end. A row whose upper end is below that is ruled out.
// src/kernels/rescore.rs has the proof.

// [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read> embd: array<vec2u>;
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<uniform> step: Step;
// [n_vocab], see split_f16
@group(0) @binding(3) var<storage, read> shifts: array<u32>;
// [K]
@group(0) @binding(4) var<storage, read> x: array<vec4f>;
// [n_vocab], see split_f16
@group(0) @binding(5) var<storage, read> error: array<f32>;
// [n_vocab], see gemv_upper
@group(0) @binding(6) var<storage, read> approx: array<f32>;
// [N_LEADS]: approx and error of a row
@group(0) @binding(7) var<storage, read> leads: array<vec2f>;
// [n_blocks]: bits of the value, id
@group(0) @binding(8) var<storage, read_write> best: array<vec2u>;
// the second shard
@group(0) @binding(9) var<storage, read> embd_1: array<vec2u>;

const_assert EACH == 1u;

const_assert SHARD_2 == N_ROWS;

// The rows of the workgroup.
var<private> mine: Rows;

fn eight_bytes(at: u32) -> vec2u {
    if SHARD_1 < N_ROWS && mine.shard == 1u {
        return embd_1[at];
    }
    return embd[at];
}

const LOWEST: f32 = -3.4e38;

var<workgroup> n_found: atomic<u32>;
var<workgroup> n_candidates: u32;
var<workgroup> candidates: array<u32, VOCAB_BLOCK>;

// What a row's error is multiplied by, for the bound of its rank.
fn error_unit(norm: f32) -> f32 {
    if sampling.inverse_temperature > 0.0 {
        return norm * sampling.inverse_temperature;
    }
    return norm;
}

// What is added to that.
fn error_of_noise() -> f32 {
    return select(0.0, NOISE_ERROR, sampling.inverse_temperature > 0.0);
}

// An upper bound of the norm of x. Called once, by the whole workgroup.
fn norm_of_x(lane: u32) -> f32 {
    var sum = 0.0;
    for (var n = 0u; n < (K / 4u + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        if i < K / 4u {
            sum += dot(x[i], x[i]);
        }
    }
    return (sqrt(group_sum_max(lane, vec2f(sum, 0.0)).x) + MIN_NORM) * SLACK;
}

// A lower bound of the greatest rank. Called once, by the whole workgroup.
fn greatest_lower_end(lane: u32, unit: f32) -> f32 {
    var lower = LOWEST;
    if unit < MAX_NORM {
        for (var n = 0u; n < (N_LEADS + WORKGROUP - 1u) / WORKGROUP; n++) {
            let i = n * WORKGROUP + lane;
            if i < N_LEADS {
                let lead = leads[i];
                lower = max(lower, lead.x - (lead.y * unit + error_of_noise()));
            }
        }
    }
    return group_max_vec2f(lane, vec2f(lower)).x;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    mine = rows_of_group(group.x, VOCAB_BLOCK);
    if lane == 0u {
        atomicStore(&n_found, 0u);
    }
    let unit = error_unit(norm_of_x(lane));
    let lower = greatest_lower_end(lane, unit);
    // The order of the candidates varies, but the best one does not.
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let row = mine.first + i * WORKGROUP + lane;
        if row < mine.end {
            let bound = error[FIRST_ROW + row] * unit + error_of_noise();
            if !(approx[FIRST_ROW + row] + bound < lower) {
                candidates[atomicAdd(&n_found, 1u)] = row;
            }
        }
    }
    workgroupBarrier();
    if lane == 0u {
        n_candidates = atomicLoad(&n_found);
    }
    let n = workgroupUniformLoad(&n_candidates);
    var value = 0.0;
    var id = NO_TOKEN;
    let repeats = (n + SLOTS - 1u) / SLOTS;
    for (var i = 0u; i < repeats; i++) {
        let slot = i * SLOTS + lane / LANES;
        var sum = 0.0;
        var row = 0u;
        if slot < n {
            row = candidates[slot];
            sum = split_sum(row - mine.start, FIRST_ROW + row, lane % LANES);
        }
        let total = lanes_sum_f32(lane, sum);
        if lane % LANES == 0u && slot < n {
            let candidate = FIRST_ROW + row;
            let v = rank(total, candidate);
            let better = v > value || (v == value && candidate < id);
            // NaN never wins.
            if v == v && (better || id == NO_TOKEN) {
                value = v;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        best[FIRST_GROUP + group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
    }
}
