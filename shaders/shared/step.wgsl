// The values that change from step to step.
struct Step {
    pos: u32,       // tokens of the text before this step
    n_tokens: u32,  // tokens in this step
    n_splits: u32,  // splits of the context in attention, at most
    split_len: u32, // positions in one split
    first: u32,     // where the text's positions begin in the buffers of the cache
    token: u32,     // index of the first token's id
    row: u32,       // of a batch: the row from which a token is chosen
    uncertain: u32, // tokens before the first one that are not certain to stay
    rows: array<Row, 14>, // each token's, where they are few
}

// One token of a step.
struct Row {
    pos: u32,       // as in the step, of this token's text
    first: u32,
    split_len: u32,
    token: u32,     // index of the token's id
}

