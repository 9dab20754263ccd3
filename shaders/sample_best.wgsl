// The best token of each vocabulary block. It has the greatest logit. If RANKED, it has the
// greatest rank instead, see noise.wgsl.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> step: Step;
// [N_VOCAB]
@group(0) @binding(2) var<storage, read> logits: array<f32>;
// [n_workgroups]: bits of the value, id
@group(0) @binding(3) var<storage, read_write> best: array<vec2u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NO_TOKEN;
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let candidate = group.x * VOCAB_BLOCK + i * WORKGROUP + lane;
        if candidate < N_VOCAB {
            var v = logits[candidate];
            if RANKED {
                v = rank(v, candidate);
            }
            // Ids ascend, so the lowest id wins among equals. NaN never wins.
            if v > value || (id == NO_TOKEN && v == v) {
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
