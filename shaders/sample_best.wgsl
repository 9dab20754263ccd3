// The best token of each vocabulary block.
//
// Greedy: the greatest logit. Otherwise: the greatest logit / temperature + Gumbel noise among the
// logits at or above the threshold. That draws each token with its softmax probability.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> step: Step;
// [N_VOCAB]
@group(0) @binding(2) var<storage, read> logits: array<f32>;
// [1]
@group(0) @binding(3) var<storage, read> threshold: array<f32>;
// [n_workgroups]: bits of the value, id
@group(0) @binding(4) var<storage, read_write> best: array<vec2u>;

// PCG-RXS-M-XS. The noise depends on seed, position and token, never on timing.
fn hash(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn gumbel(id: u32) -> f32 {
    let bits = hash(hash(hash(sampling.seed) ^ (step.pos + step.n_tokens)) ^ id) >> 9u;
    // A number of 23 bits plus a half is exact in f32, and the quotient is never 0 or 1.
    let uniform_open = (f32(bits) + 0.5) / 8388608.0;
    // The largest noise comes from numbers near 1. There a GPU's logarithm may be off by 2^-21.
    // That is more than its value, so the noise could be infinite. The series of log(1 - rest) is
    // exact there.
    let rest = (f32(8388607u - bits) + 0.5) / 8388608.0;
    let exponential =
        select(-log(uniform_open), rest * (1.0 + rest * (0.5 + rest / 3.0)), rest < 0.01);
    return -log(exponential);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NO_TOKEN;
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let candidate = group.x * VOCAB_BLOCK + i * WORKGROUP + lane;
        if candidate < N_VOCAB {
            var v = logits[candidate];
            var passes = true;
            if sampling.inverse_temperature > 0.0 {
                passes = v >= threshold[0];
                v = v * sampling.inverse_temperature + gumbel(candidate);
            }
            // Ids ascend, so the lowest id wins among equals. NaN never wins.
            if passes && (v > value || (id == NO_TOKEN && v == v)) {
                value = v;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        best[group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
    }
}
