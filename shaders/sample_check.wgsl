// Checks that top-p ends at the same token, whatever the logits are that rescore_kept left out. If
// that is not certain, rescore_rest computes them. There is one workgroup.
// src/kernels/rescore_kept.rs has the proof.

@group(0) @binding(0) var<uniform> sampling: Sampling;
// [3, N_GREATEST], see rescore_kept
@group(0) @binding(1) var<storage, read> greatest: array<u32>;
// [N_BINS]: see sample_bins
@group(0) @binding(2) var<storage, read> bins: array<vec2u>;
// [1]: 1 if the other logits are needed
@group(0) @binding(3) var<storage, read_write> rest: array<u32>;

// Covers the errors of both sums that are compared, and the margin of sample_sift.
const MARGIN: f32 = 4.0 * SUM_ERROR;
// Covers the rounding of a weight.
const WEIGHT_SLACK: f32 = 1.01;

var<workgroup> nearest: atomic<u32>; // all logits that were left out have keys below this
var<workgroup> p_bin: atomic<u32>;

// The most that all rows without a logit can weigh together, for lane 0. Called once, by the whole workgroup.
fn ruled_out(lane: u32, largest: u32) -> f32 {
    var weight = 0.0;
    for (var n = 0u; n < (N_GREATEST + WORKGROUP - 1u) / WORKGROUP; n++) {
        let block = n * WORKGROUP + lane;
        if block < N_GREATEST {
            let at_limit = bitcast<f32>(greatest[N_GREATEST + block]);
            let limit = bitcast<f32>(greatest[2u * N_GREATEST + block]);
            let below = value_of(largest) - limit;
            weight += at_limit * exp(-below * sampling.inverse_temperature) * WEIGHT_SLACK;
            atomicMax(&nearest, key_of(limit));
        }
    }
    return sum_of_all(lane, weight);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&nearest, 0u);
        atomicStore(&p_bin, LAST_BIN);
    }
    let largest = greatest_of_all(lane);
    let more = ruled_out(lane, largest);
    sum_up(lane);
    workgroupBarrier();
    let mass = mass_to[LAST_BIN];
    for (var i = 0u; i < BINS_EACH; i++) {
        let bin = lane * BINS_EACH + i;
        if mass_to[bin] >= sampling.top_p * mass * (1.0 - MARGIN) {
            atomicMin(&p_bin, bin);
        }
    }
    workgroupBarrier();
    if lane == 0u {
        let bin = atomicLoad(&p_bin);
        // All three conditions must hold. A comparison with NaN is false.
        let one = bin < LAST_BIN && count_to[bin] - count_above(bin) == 1u;
        let ends = mass_to[bin] >= sampling.top_p * (mass + more) * (1.0 + MARGIN);
        let apart = u32(bins_below(largest, atomicLoad(&nearest))) > bin;
        rest[0] = select(1u, 0u, one && ends && apart);
    }
}
