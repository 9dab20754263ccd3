var<workgroup> greatest_key: atomic<u32>;

// The key of the greatest logit, from the keys of N_GREATEST blocks of tokens. Called once, by the
// whole workgroup. It is a barrier for workgroup memory.
fn greatest_of_all(lane: u32) -> u32 {
    if lane == 0u {
        atomicStore(&greatest_key, 0u);
    }
    workgroupBarrier();
    var key = 0u;
    for (var n = 0u; n < (N_GREATEST + WORKGROUP - 1u) / WORKGROUP; n++) {
        key = max(key, greatest[min(n * WORKGROUP + lane, N_GREATEST - 1u)]);
    }
    atomicMax(&greatest_key, key);
    workgroupBarrier();
    return atomicLoad(&greatest_key);
}

