// Finds the best token in each block of rows, of up to two shards, see shards.wgsl. It is the token
// that gemv_lm_head and sample_best would find, with penalize between them if ADJUSTED. The
// approximate ranks rule out most rows. The logits of the others are computed again from all of
// their bytes.
//
// A row's rank is within a bound of approx[row], so it has a lower end and an upper end. The
// greatest rank is at least every lead's lower end. A row whose upper end is below one of these is
// ruled out. src/kernels/rescore.rs has the proof.

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
// [n_vocab]: the bits of a rank, see gemv_upper; if ADJUSTED, of an Adjusted, see penalize_upper
@group(0) @binding(6) var<storage, read> approx: array<u32>;
// [N_LEADS]: approx and error of a row
@group(0) @binding(7) var<storage, read> leads: array<vec2f>;
// [n_blocks]: bits of the value, id
@group(0) @binding(8) var<storage, read_write> best: array<vec2u>;
@group(0) @binding(9) var<uniform> penalties: Penalties;
// the second shard
@group(0) @binding(10) var<storage, read> embd_1: array<vec2u>;

const WORDS: u32 = select(1u, 3u, ADJUSTED);

fn approx_of(id: u32) -> f32 {
    return bitcast<f32>(approx[WORDS * id]);
}

fn rule_out(below: f32) {}

// A logit with its bias and its penalties.
fn adjusted(logit: f32, id: u32) -> f32 {
    if ADJUSTED {
        return penalized(logit + bitcast<f32>(approx[WORDS * id + 1u]), approx[WORDS * id + 2u]);
    }
    return logit;
}

// The bound of a row's rank is its error times this, plus more_error().
fn error_unit(norm: f32) -> f32 {
    var unit = norm;
    if ADJUSTED {
        unit *= penalties.growth;
    }
    if sampling.inverse_temperature > 0.0 {
        unit *= sampling.inverse_temperature;
    }
    return unit;
}

// The part of the bound that does not depend on the row.
fn more_error() -> f32 {
    var more = 0.0;
    if ADJUSTED {
        let most = penalties.growth * MAX_BIAS + abs(penalties.presence)
            + abs(penalties.frequency) * f32(step.pos + step.n_tokens);
        more = ROUNDING * most;
    }
    if sampling.inverse_temperature > 0.0 {
        more = more * sampling.inverse_temperature + NOISE_ERROR;
    }
    return more;
}

// A lower bound of the greatest rank. Called once, by the whole workgroup.
fn greatest_lower_end(lane: u32, unit: f32) -> f32 {
    var lower = LOWEST;
    if unit < MAX_NORM {
        for (var n = 0u; n < (N_LEADS + WORKGROUP - 1u) / WORKGROUP; n++) {
            let i = n * WORKGROUP + lane;
            if i < N_LEADS {
                let lead = leads[i];
                lower = max(lower, lead.x - (lead.y * unit + more_error()));
            }
        }
    }
    return group_max_f32(lane, lower);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    mine = rows_of_group(group.x, VOCAB_BLOCK);
    let unit = error_unit(norm_of_x(lane));
    let lower = greatest_lower_end(lane, unit);
    let n = find_candidates(lane, lower, unit, more_error());
    var value = 0.0;
    var id = NO_TOKEN;
    let repeats = (n + TEAMS - 1u) / TEAMS;
    // The order of the candidates varies, but the best one does not.
    for (var i = 0u; i < repeats; i++) {
        let candidate = score(lane, i * TEAMS, n);
        if candidate.counts {
            let v = rank(adjusted(candidate.logit, candidate.id), candidate.id);
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
