// The least logit that top-k, top-p and min-p accept. One workgroup.
//
// Top-k and top-p both ask for a greatest threshold: the tokens at or above it must weigh enough
// together. For top-k each token weighs 1, and they must weigh k. For top-p they must have the
// probability p. The search works on keys: the bits of a logit, mapped so that keys sort as
// integers like the logits. It finds the threshold from the top bits down, in digits of three bits.
// For each digit, the vocabulary is read once, to sum the weights for seven candidate thresholds.
// Sums are added in a fixed order, so the same logits always give the same threshold.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<storage, read> logits: array<f32>;           // [N_VOCAB]
@group(0) @binding(2) var<storage, read_write> threshold: array<f32>;  // [1]

const VALUES: u32 = (N_VOCAB + WORKGROUP - 1u) / WORKGROUP; // of a lane
const HALVINGS: u32 = countTrailingZeros(WORKGROUP);
// The key of -inf. As a threshold it accepts every number. Smaller keys belong to NaN.
const KEY_OF_LEAST: u32 = 0x007fffffu;

var<workgroup> partial: array<f32, WORKGROUP>;
var<workgroup> partial_max: array<f32, WORKGROUP>;
var<workgroup> partial_low: array<vec4f, WORKGROUP>;
var<workgroup> partial_high: array<vec4f, WORKGROUP>;

// Keys sort as integers like their values.
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

// The greatest key, at least `least`, such that the tokens with that key or a greater one weigh
// `target_weight` together.
fn search(lane: u32, largest: f32, counting: bool, target_weight: f32, least: u32) -> u32 {
    var found = 0u;
    for (var i = 0u; i < 11u; i++) {
        // Bits 31 and 30 first, then three at a time.
        let shift = 30u - 3u * i;
        let width = select(7u, 3u, i == 0u);
        var low = vec4f();
        var high = vec4f();
        for (var n = 0u; n < VALUES; n++) {
            let id = n * WORKGROUP + lane;
            let logit = logits[min(id, N_VOCAB - 1u)];
            let key = key_of(logit);
            if id < N_VOCAB && key >= least && key >= found {
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
    for (var n = 0u; n < VALUES; n++) {
        best = max(best, logits[min(n * WORKGROUP + lane, N_VOCAB - 1u)]);
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
        for (var n = 0u; n < VALUES; n++) {
            let i = n * WORKGROUP + lane;
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
    // Always accept the best token, even if rounding would exclude it.
    least = min(least, key_of(largest));
    if lane == 0u {
        threshold[0] = value_of(least);
    }
}
