// The greatest logit of each vocabulary block. Also empties what the kernels after it add to.

// [N_VOCAB]
@group(0) @binding(0) var<storage, read> logits: array<f32>;
// [N_BLOCKS]: keys
@group(0) @binding(1) var<storage, read_write> greatest: array<u32>;
// [N_BINS, 2]
@group(0) @binding(2) var<storage, read_write> bins: array<u32>;
// [1]
@group(0) @binding(3) var<storage, read_write> n_undecided: array<u32>;

const LANES_IN_ALL: u32 = N_BLOCKS * WORKGROUP;

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
        if group.x == 0u {
            n_undecided[0] = 0u;
        }
    }
    for (var n = 0u; n < (2u * N_BINS + LANES_IN_ALL - 1u) / LANES_IN_ALL; n++) {
        let i = n * LANES_IN_ALL + group.x * WORKGROUP + lane;
        if i < 2u * N_BINS {
            bins[i] = 0u;
        }
    }
}
