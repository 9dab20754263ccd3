// The best token of all blocks becomes the next token.

// [N_BLOCKS]: bits of the value, id
@group(0) @binding(0) var<storage, read> best: array<vec2u>;
// [chunk]
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
// [N_SAMPLED], the latest at the end
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < (N_BLOCKS + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        let other = bitcast<f32>(best[min(i, N_BLOCKS - 1u)].x);
        if i < N_BLOCKS && best[i].y != NO_TOKEN && (id == NO_TOKEN || other > value) {
            value = other;
            id = best[i].y;
        }
    }
    commit(lane, value, id);
}
