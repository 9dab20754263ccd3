// Called once, by the whole workgroup, with the best token of each lane. The best of all becomes the
// next token: it is written to `tokens`, where the next step's embedding lookup reads it, and
// appended to `sampled`, which the read-back copies.

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

