// The least logit that top-k, top-p and min-p let pass. One workgroup.
//
// Each of top-k and top-p asks for the greatest threshold such that the tokens at or above it weigh
// enough together: k tokens of weight 1, or the probability p. The threshold is found on the
// logits' bits, mapped so that they order as integers, three bits a pass from the top: seven
// candidate thresholds at a time, all their sums taken in one pass over the vocabulary. Sums are
// made in a fixed order, so the same logits always give the same threshold.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<storage, read> logits: array<f32>;           // [N_VOCAB]
@group(0) @binding(2) var<storage, read_write> threshold: array<f32>;  // [1]

const WORKGROUP: u32 = 256u;
const TURNS: u32 = (N_VOCAB + WORKGROUP - 1u) / WORKGROUP;
const HALVINGS: u32 = countTrailingZeros(WORKGROUP);
// The key of -inf, which lets every number pass. Smaller keys are NaN's, which let none.
const KEY_OF_LEAST: u32 = 0x007fffffu;

var<workgroup> partial: array<f32, WORKGROUP>;
var<workgroup> partial_max: array<f32, WORKGROUP>;
var<workgroup> partial_low: array<vec4f, WORKGROUP>;
var<workgroup> partial_high: array<vec4f, WORKGROUP>;

// Orders as an unsigned integer as the value does as a float.
fn key_of(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn value_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}

fn weight_of(logit: f32, largest: f32, counting: bool) -> f32 {
    return select(exp((logit - largest) * sampling.inverse_temperature), 1.0, counting);
}

fn sum_over(lane: u32, low: vec4f, high: vec4f) {
    partial_low[lane] = low;
    partial_high[lane] = high;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            partial_low[lane] += partial_low[lane + half];
            partial_high[lane] += partial_high[lane + half];
        }
    }
    workgroupBarrier();
}

// The greatest key at or above `least` such that tokens with that key or more weigh `target`.
fn search(lane: u32, largest: f32, counting: bool, target_weight: f32, least: u32) -> u32 {
    var found = 0u;
    for (var round = 0u; round < 11u; round++) {
        // Bits 31 and 30 in the first round, then three at a time.
        let shift = 30u - 3u * round;
        let width = select(7u, 3u, round == 0u);
        var low = vec4f();
        var high = vec4f();
        for (var turn = 0u; turn < TURNS; turn++) {
            let i = turn * WORKGROUP + lane;
            let logit = logits[min(i, N_VOCAB - 1u)];
            let key = key_of(logit);
            if i < N_VOCAB && key >= least && key >= found {
                let w = weight_of(logit, largest, counting);
                let digit = min((key - found) >> shift, width);
                low += select(vec4f(), vec4f(w), vec4u(digit) >= vec4u(0u, 1u, 2u, 3u));
                high += select(vec4f(), vec4f(w), vec4u(digit) >= vec4u(4u, 5u, 6u, 7u));
            }
        }
        sum_over(lane, low, high);
        let below = partial_low[0];
        let above = partial_high[0];
        workgroupBarrier();
        var digit = 0u;
        digit = select(digit, 1u, below.y >= target_weight);
        digit = select(digit, 2u, below.z >= target_weight);
        digit = select(digit, 3u, below.w >= target_weight);
        digit = select(digit, 4u, above.x >= target_weight);
        digit = select(digit, 5u, above.y >= target_weight);
        digit = select(digit, 6u, above.z >= target_weight);
        digit = select(digit, 7u, above.w >= target_weight);
        found += digit << shift;
    }
    return max(found, least);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var best = -3.4e38;
    for (var turn = 0u; turn < TURNS; turn++) {
        best = max(best, logits[min(turn * WORKGROUP + lane, N_VOCAB - 1u)]);
    }
    partial_max[lane] = best;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            partial_max[lane] = max(partial_max[lane], partial_max[lane + half]);
        }
    }
    let largest = workgroupUniformLoad(&partial_max[0]);

    var least = KEY_OF_LEAST;
    if sampling.top_k > 0u && sampling.top_k < N_VOCAB {
        least = search(lane, largest, true, f32(sampling.top_k), least);
    }
    if sampling.top_p < 1.0 {
        var mass = 0.0;
        for (var turn = 0u; turn < TURNS; turn++) {
            let i = turn * WORKGROUP + lane;
            if i < N_VOCAB && key_of(logits[i]) >= least {
                mass += weight_of(logits[i], largest, false);
            }
        }
        partial[lane] = mass;
        for (var i = 0u; i < HALVINGS; i++) {
            let half = WORKGROUP >> (i + 1u);
            workgroupBarrier();
            if lane < half {
                partial[lane] += partial[lane + half];
            }
        }
        let all = workgroupUniformLoad(&partial[0]);
        least = search(lane, largest, false, sampling.top_p * all, least);
    }
    if sampling.min_p > 0.0 {
        least = max(least, key_of(largest + log(sampling.min_p) / sampling.inverse_temperature));
    }
    // The best token always passes, whatever rounding did.
    least = min(least, key_of(largest));
    if lane == 0u {
        threshold[0] = value_of(least);
    }
}
