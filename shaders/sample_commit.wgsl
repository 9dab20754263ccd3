// The best token of all blocks becomes the next token.

// [N_BLOCKS]: bits of the value, id
@group(0) @binding(0) var<storage, read> best: array<vec2u>;
// [chunk]
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
// [N_SAMPLED], the latest at the end
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    let found = best_of_blocks(lane);
    commit(lane, found.value, found.id);
}
