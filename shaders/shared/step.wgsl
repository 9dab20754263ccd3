// The values that change from step to step.
struct Step {
    pos: u32,       // tokens of the sequence before this step
    n_tokens: u32,  // tokens in this step
    n_splits: u32,  // splits of the context in attention
    split_len: u32, // positions in one split
    first: u32,     // where the sequence's positions begin in the buffers of the cache
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

