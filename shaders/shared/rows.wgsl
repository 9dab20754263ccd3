// Where a token of the step is. If the kernel's constant ROWS is true, the step has a row for each of
// its few tokens, which may belong to several sequences. If SPANS is true, it has a row for each span:
// tokens that follow one another in one sequence. The row's token is that of the first of them. If
// neither is true, all tokens follow one another in one sequence; only the order of the ids counts in
// the step of all spans of a pass.

// Rows that are not used have no length of splits.
fn is_row(n: u32) -> bool {
    return n < 14u && step.rows[n].split_len > 0u;
}

fn tokens_of_span(n: u32) -> u32 {
    if is_row(n + 1u) {
        return step.rows[n + 1u].token - step.rows[n].token;
    }
    return step.token + step.n_tokens - step.rows[n].token;
}

// The span of the token whose id has this index.
fn span_of(token: u32) -> u32 {
    var found = 0u;
    for (var n = 1u; n < 14u; n++) {
        if is_row(n) && step.rows[n].token <= token {
            found = n;
        }
    }
    return found;
}

fn row_of(token: u32) -> Row {
    if ROWS {
        return step.rows[token];
    }
    let nth = token - step.row;
    let id = step.token + nth;
    if SPANS {
        let span = step.rows[span_of(id)];
        return Row(span.pos + id - span.token, span.first, span.split_len, id);
    }
    return Row(step.pos + nth, step.first, step.split_len, id);
}
