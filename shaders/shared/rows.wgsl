// Where a token of the step is. The kernel's constant ROWS says whether the step has rows. If it
// has, its few tokens may belong to several sequences. If not, its tokens follow each other in one
// sequence; only the order of the ids counts in the step of all spans of a pass.

fn row_of(token: u32) -> Row {
    if ROWS {
        return step.rows[token];
    }
    let nth = token - step.row;
    return Row(step.pos + nth, step.first, step.split_len, step.token + nth);
}

