// Changes the logits of tokens that have a bias, that the sequence has already, or that a mask
// forbids.

@group(0) @binding(0) var<uniform> penalties: Penalties;
@group(0) @binding(1) var<uniform> step: Step;
// [chunk]
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
// [N_VOCAB]: how often the output has the token, and IN_PROMPT if the prompt has it
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
// [N_VOCAB]: added to the logits
@group(0) @binding(4) var<storage, read> biases: array<f32>;
// [MASK_WORDS]: a bit for each token
@group(0) @binding(5) var<storage, read> masks: array<u32>;
// [N_VOCAB]
@group(0) @binding(6) var<storage, read> logits: array<f32>;
// [N_VOCAB]
@group(0) @binding(7) var<storage, read_write> adjusted: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let id = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        if id < N_VOCAB {
            adjusted[id] = penalized(logits[id] + bias_of(id, 0u), counted(id));
        }
    }
}
