// The shader has `best` [N_BLOCKS]: the bits of the best value of each vocabulary block, and its
// token.

struct Found {
    value: f32,
    id: u32,
}

// The best token of this lane's blocks.
fn best_of_blocks(lane: u32) -> Found {
    var found = Found(0.0, NO_TOKEN);
    for (var i = 0u; i < (N_BLOCKS + WORKGROUP - 1u) / WORKGROUP; i++) {
        let block = i * WORKGROUP + lane;
        let other = bitcast<f32>(best[min(block, N_BLOCKS - 1u)].x);
        if block < N_BLOCKS && best[block].y != NO_TOKEN && (found.id == NO_TOKEN || other > found.value) {
            found = Found(other, best[block].y);
        }
    }
    return found;
}

// Called once, by the whole workgroup, with the best token of each lane. The best of all becomes
// the next token. It is written to `tokens`, where the next step's embedding lookup reads it, and
// appended to `sampled`, which the readback copies.

const_assert N_SAMPLED <= WORKGROUP;

fn commit(lane: u32, value: f32, id: u32) {
    let next = sampled[min(lane + 1u, N_SAMPLED - 1u)];
    storageBarrier(); // every lane has read its token before another overwrites them
    reduce(lane, value, id);
    if lane + 1u < N_SAMPLED {
        sampled[lane] = next;
    }
    if lane == 0u {
        tokens[0] = ids[0];
        sampled[N_SAMPLED - 1u] = ids[0];
    }
}

