// The greedy choice after each of a step's tokens: the greatest logit, the lowest id among equals. One
// workgroup per token.

@group(0) @binding(0) var<storage, read> logits: array<f32>;      // [n_tokens, N_VOCAB]
@group(0) @binding(1) var<storage, read_write> chosen: array<u32>; // [n_tokens]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * N_VOCAB;
    var value = 0.0;
    var id = NONE;
    for (var i = lane; i < N_VOCAB; i += WORKGROUP) {
        let v = logits[row + i];
        // Ascending ids and a strict comparison, and NaN never wins, as in sample_best.
        if v > value || (id == NONE && v == v) {
            value = v;
            id = i;
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        chosen[group.x] = ids[0];
    }
}
