// Where a token of the step is. The kernel's constant ROWS says whether the step has rows: the tokens
// of few may be of several texts, those of many follow each other in one.

fn row_of(token: u32) -> Row {
    if ROWS {
        return step.rows[token];
    }
    return Row(step.pos + token, step.first, step.split_len, step.token + token);
}

