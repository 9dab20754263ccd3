// The values that differ from step to step.
struct Step {
    pos: u32,       // tokens of the sequence before this step
    n_tokens: u32,  // tokens in this step
    n_splits: u32,  // the most splits of the context in attention
    split_len: u32, // positions in one split
    first: u32,     // where the sequence's positions begin in the buffers of the cache
    token: u32,     // index of the first token's id
    row: u32,       // the row of the first token in buffers that have a row for each token
    uncertain: u32, // how many tokens before the first one may still leave the sequence
    rows: array<Row, 14>, // one for each token, if they are few, or for each span, see rows.wgsl
}

// One token or one span of a step.
struct Row {
    pos: u32,       // as in the step, of its sequence
    first: u32,
    split_len: u32,
    token: u32,     // index of its id, or of the first of its ids
}

