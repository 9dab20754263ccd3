// Copies one row of the logits of a batch.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_VOCAB]
@group(0) @binding(1) var<storage, read> all: array<f32>;
// [N_VOCAB]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) at: vec3u) {
    if at.x < N_VOCAB {
        logits[at.x] = all[step.row * N_VOCAB + at.x];
    }
}
