// Sorts tokens into bins by their distance from the greatest logit. A bin has two numbers: how many
// tokens are in it, and how much less they weigh than as many tokens at its upper end. Both are
// integers, so the order of additions does not matter.

@group(0) @binding(0) var<uniform> sampling: Sampling;
// [N_VOCAB]
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// [N_GREATEST]: keys
@group(0) @binding(2) var<storage, read> greatest: array<u32>;
// [N_BINS, 2]
@group(0) @binding(3) var<storage, read_write> bins: array<atomic<u32>>;

var<workgroup> of_block: array<atomic<u32>, 2u * N_BINS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var n = 0u; n < 2u * N_BINS / WORKGROUP; n++) {
        atomicStore(&of_block[n * WORKGROUP + lane], 0u);
    }
    let largest = greatest_of_all(lane);
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let id = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        let key = key_of(logits[min(id, N_VOCAB - 1u)]);
        if id < N_VOCAB && key != 0u {
            let below = bins_below(largest, key);
            let bin = u32(below);
            atomicAdd(&of_block[2u * bin], 1u);
            atomicAdd(&of_block[2u * bin + 1u], missing(below - f32(bin)));
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < 2u * N_BINS / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        let sum = atomicLoad(&of_block[i]);
        if sum != 0u {
            atomicAdd(&bins[i], sum);
        }
    }
}
