// The greedy choice after each token of a step, in each vocabulary block: the greatest sum of logit
// and bias, and the lowest id among equals.

// [n_tokens, N_VOCAB]
@group(0) @binding(0) var<storage, read> logits: array<f32>;
// [N_VOCAB]
@group(0) @binding(1) var<storage, read> biases: array<f32>;
// [n_tokens, n_blocks]: bits of the logit, id
@group(0) @binding(2) var<storage, read_write> best: array<vec2u>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.y * N_VOCAB;
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let candidate = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        if candidate < N_VOCAB {
            let v = logits[row + candidate] + biases[candidate];
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
        best[group.y * groups.x + group.x] = vec2u(bitcast<u32>(logit), ids[0]);
    }
}
