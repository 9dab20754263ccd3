// The values that change from step to step.
struct Step {
    pos: u32,       // tokens in the KV cache before this step
    n_tokens: u32,  // tokens in this step
    n_splits: u32,  // splits of the context in attention
    split_len: u32, // positions in one split
}

