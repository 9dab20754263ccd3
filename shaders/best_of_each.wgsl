// The greedy choice after each of a step's tokens, in each stretch of the vocabulary: the greatest logit, the
// lowest id among equals.

@group(0) @binding(0) var<storage, read> logits: array<f32>;       // [n_tokens, N_VOCAB]
@group(0) @binding(1) var<storage, read_write> best: array<vec2u>; // [n_tokens, n_stretches]: bits of the value, id

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    var value = 0.0;
    var id = NONE;
    for (var turn = 0u; turn < STRETCH / WORKGROUP; turn++) {
        let candidate = group.x * STRETCH + turn * WORKGROUP + lane;
        if candidate < N_VOCAB {
            let v = logits[group.y * N_VOCAB + candidate];
            // Ascending ids and a strict comparison, and NaN never wins, as in sample_best.
            if v > value || (id == NONE && v == v) {
                value = v;
                id = candidate;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        best[group.y * groups.x + group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
    }
}
