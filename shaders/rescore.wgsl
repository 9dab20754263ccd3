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

fn approx_of(id: u32) -> f32 {
    return approx[id];
}

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
    let unit = error_unit(norm_of_x(lane));
    let lower = greatest_lower_end(lane, unit);
    let n = find_candidates(lane, lower, unit, error_of_noise());
    var value = 0.0;
    var id = NO_TOKEN;
    let repeats = (n + SLOTS - 1u) / SLOTS;
    // The order of the candidates varies, but the best one does not.
    for (var i = 0u; i < repeats; i++) {
        let candidate = score(lane, i * SLOTS, n);
        if candidate.counts {
            let v = rank(candidate.logit, candidate.id);
            let better = v > value || (v == value && candidate.id < id);
            // NaN never wins.
            if v == v && (better || id == NO_TOKEN) {
                value = v;
                id = candidate.id;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        best[FIRST_GROUP + group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
    }
}
