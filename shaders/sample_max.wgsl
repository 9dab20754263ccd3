// The greatest logit of each vocabulary block.

// [N_VOCAB]
@group(0) @binding(0) var<storage, read> logits: array<f32>;
// [N_BLOCKS]: keys
@group(0) @binding(1) var<storage, read_write> greatest: array<u32>;

var<workgroup> greatest_of_block: atomic<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&greatest_of_block, 0u);
    }
    workgroupBarrier();
    var key = 0u;
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let id = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        key = max(key, key_of(logits[min(id, N_VOCAB - 1u)]));
    }
    atomicMax(&greatest_of_block, key);
    workgroupBarrier();
    if lane == 0u {
        greatest[group.x] = atomicLoad(&greatest_of_block);
    }
}
