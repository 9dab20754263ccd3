// The greedy choice after each token of a draft pass, in each vocabulary block. It is the token
// with the greatest logit, with its bias and penalties, among those that its mask allows. Of equal
// ones, it is the one with the lowest id.
//
// Some tokens are not counted yet, because they may turn out wrong. These are the tokens of the
// pass, and those of the pass before it if that is still in flight. Each row adds the ones that
// come before its logits.

@group(0) @binding(0) var<uniform> penalties: Penalties;
@group(0) @binding(1) var<uniform> step: Step;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
// [N_VOCAB], as in penalize
@group(0) @binding(3) var<storage, read> counts: array<u32>;
// [N_VOCAB]
@group(0) @binding(4) var<storage, read> biases: array<f32>;
// [n_tokens, MASK_WORDS]: the mask after each token
@group(0) @binding(5) var<storage, read> masks: array<u32>;
// [n_tokens, N_VOCAB]
@group(0) @binding(6) var<storage, read> logits: array<f32>;
// [n_tokens, n_blocks]
@group(0) @binding(7) var<storage, read_write> best: array<Best>;

struct Best {
    value: u32, // the bits of the logit with its bias and penalties
    id: u32,
    logit: u32, // the bits of the model's own logit
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.y * N_VOCAB;
    let first = step.token - step.uncertain;
    let n_uncertain = step.uncertain + group.y + 1u;
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let candidate = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        if candidate < N_VOCAB {
            var count = counts[candidate];
            for (var i = 0u; i < n_uncertain; i++) {
                count += u32(tokens[first + i] == candidate);
            }
            let v = penalized(logits[row + candidate] + bias_of(candidate, group.y), count);
            // Ids ascend, so the lowest id wins among equals. NaN never wins.
            if v > value || (id == NO_TOKEN && v == v) {
                value = v;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        let logit = select(logits[row + min(ids[0], N_VOCAB - 1u)], 0.0, ids[0] == NO_TOKEN);
        best[group.y * groups.x + group.x] =
            Best(bitcast<u32>(values[0]), ids[0], bitcast<u32>(logit));
    }
}
