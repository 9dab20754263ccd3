// The best of the stretches' best becomes the next token: it is written where the next step's
// embedding lookup reads it, and behind those before it where the read-back copies from.

@group(0) @binding(0) var<storage, read> best: array<vec2u>;         // [N_STRETCHES]: bits of the value, id
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;   // [chunk]
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;  // [N_SAMPLED <= WORKGROUP], the latest at the end

const WORKGROUP: u32 = 64u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NONE;
    for (var turn = 0u; turn < (N_STRETCHES + WORKGROUP - 1u) / WORKGROUP; turn++) {
        let i = turn * WORKGROUP + lane;
        let other = bitcast<f32>(best[min(i, N_STRETCHES - 1u)].x);
        if i < N_STRETCHES && best[i].y != NONE && (id == NONE || other > value) {
            value = other;
            id = best[i].y;
        }
    }
    let next = sampled[min(lane + 1u, N_SAMPLED - 1u)];
    storageBarrier(); // every lane has read what another is to write over
    reduce(lane, value, id);
    if lane + 1u < N_SAMPLED {
        sampled[lane] = next;
    }
    if lane == 0u {
        tokens[0] = ids[0];
        sampled[N_SAMPLED - 1u] = ids[0];
    }
}
