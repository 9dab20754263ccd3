// Changes approximate logits as penalize changes logits. With each it stores the values that change
// it. Each vocabulary block stores a lead: its greatest rank, see noise.wgsl, and the error of that
// row.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> penalties: Penalties;
@group(0) @binding(2) var<uniform> step: Step;
@group(0) @binding(3) var<storage, read> tokens: array<u32>;            // [chunk]
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;      // [N_VOCAB], as in penalize
@group(0) @binding(5) var<storage, read> biases: array<f32>;            // [N_VOCAB]
@group(0) @binding(6) var<storage, read> masks: array<u32>;             // [MASK_WORDS]
@group(0) @binding(7) var<storage, read> approx: array<f32>;            // [N_VOCAB]
@group(0) @binding(8) var<storage, read> error: array<f32>;             // [N_VOCAB], see split_f16
@group(0) @binding(9) var<storage, read_write> adjusted: array<Adjusted>; // [N_VOCAB]
@group(0) @binding(10) var<storage, read_write> leads: array<vec2f>;     // [vocab_blocks]

// rescore reads it as three words.
struct Adjusted {
    rank: f32,
    bias: f32,
    count: u32,
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let candidate = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        if candidate < N_VOCAB {
            let count = counted(candidate);
            let bias = bias_of(candidate, 0u);
            let v = rank(penalized(approx[candidate] + bias, count), candidate);
            adjusted[candidate] = Adjusted(v, bias, count);
            if id == NO_TOKEN || v > value {
                value = v;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        leads[group.x] = vec2f(values[0], error[min(ids[0], N_VOCAB - 1u)]);
    }
}
