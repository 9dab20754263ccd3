// The best token of each stretch of one shard's rows, as gemv_head and a greedy sample_best would find
// it: every row that the approximate logits do not rule out is computed again from all of its bytes.
//
// A row's logit is within error[row] * |x| of approx[row]. The greatest is thus no less than any
// lead's lower end, and rows whose upper end is below that are out. Why, is told in
// src/kernels/rescore.rs.

@group(0) @binding(0) var<storage, read> embd: array<vec2u>;        // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;           // [K]
@group(0) @binding(2) var<storage, read> error: array<f32>;         // [n_vocab], see split_f16
@group(0) @binding(3) var<storage, read> approx: array<f32>;        // [n_vocab], see gemv_upper
@group(0) @binding(4) var<storage, read> leads: array<vec2f>;       // [N_LEADS]: approx and error of a row
@group(0) @binding(5) var<storage, read_write> best: array<vec2u>;  // [n_stretches]: bits of the value, id

const ROWS: u32 = WORKGROUP / LANES; // at once
const SLACK: f32 = 1.002;            // above any rounding of the sum of squares
const MIN_NORM: f32 = 0x1p-56;     // above the norm of all values whose squares underflow
const MAX_NORM: f32 = 1e30;         // beyond which a logit might overflow
const LOWEST: f32 = -3.4e38;

var<workgroup> n_found: atomic<u32>;
var<workgroup> n_candidates: u32;
var<workgroup> candidates: array<u32, STRETCH>;

// At least the norm of x. Called once, by the whole workgroup.
fn norm_of_x(lane: u32) -> f32 {
    var sum = 0.0;
    for (var turn = 0u; turn < (K / 4u + WORKGROUP - 1u) / WORKGROUP; turn++) {
        let i = turn * WORKGROUP + lane;
        if i < K / 4u {
            sum += dot(x[i], x[i]);
        }
    }
    return (sqrt(group_sum_max(lane, vec2f(sum, 0.0)).x) + MIN_NORM) * SLACK;
}

// At most the greatest logit. Called once, by the whole workgroup.
fn greatest_lower_end(lane: u32, norm: f32) -> f32 {
    var lower = LOWEST;
    if norm < MAX_NORM {
        for (var turn = 0u; turn < (N_LEADS + WORKGROUP - 1u) / WORKGROUP; turn++) {
            let i = turn * WORKGROUP + lane;
            if i < N_LEADS {
                let lead = leads[i];
                lower = max(lower, lead.x - lead.y * norm);
            }
        }
    }
    return group_max_vec2f(lane, vec2f(lower)).x;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&n_found, 0u);
    }
    let norm = norm_of_x(lane);
    let lower = greatest_lower_end(lane, norm);
    // In whatever order they are found: the best is the same.
    for (var turn = 0u; turn < STRETCH / WORKGROUP; turn++) {
        let row = group.x * STRETCH + turn * WORKGROUP + lane;
        if row < N_ROWS && !(approx[FIRST_ROW + row] + error[FIRST_ROW + row] * norm < lower) {
            candidates[atomicAdd(&n_found, 1u)] = row;
        }
    }
    workgroupBarrier();
    if lane == 0u {
        n_candidates = atomicLoad(&n_found);
    }
    let n = workgroupUniformLoad(&n_candidates);
    var value = 0.0;
    var id = NONE;
    let turns = (n + ROWS - 1u) / ROWS;
    for (var turn = 0u; turn < turns; turn++) {
        let slot = turn * ROWS + lane / LANES;
        var sum = 0.0;
        var row = 0u;
        if slot < n {
            row = candidates[slot];
            sum = lane_sum(row, lane % LANES);
        }
        let total = lanes_sum_f32(lane, sum);
        if lane % LANES == 0u && slot < n {
            let candidate = FIRST_ROW + row;
            let better = total > value || (total == value && candidate < id);
            // NaN never wins.
            if total == total && (better || id == NONE) {
                value = total;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        best[FIRST_STRETCH + group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
    }
}
