// Finds the candidates by bounds that the upper bytes give for each row. src/kernels/rescore.rs has the proof.
//
// The kernel declares x, error, approx_of(id), which is the approximate value of a row, and
// rule_out(below), which is called for a row whose upper end is so far below the limit.

const LOWEST: f32 = -3.4e38;

// An upper bound of the norm of x. Called once, by the whole workgroup.
fn norm_of_x(lane: u32) -> f32 {
    var sum = 0.0;
    for (var n = 0u; n < (K / 4u + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        if i < K / 4u {
            sum += dot(x[i], x[i]);
        }
    }
    return (sqrt(group_sum_max(lane, vec2f(sum, 0.0)).x) + MIN_NORM) * SLACK;
}

// Lists the candidates of the workgroup, which are the rows whose upper ends are not below `lower`.
// A row's bound is its error times `unit`, plus `more`. Returns their number. Called once, by the
// whole workgroup.
fn find_candidates(lane: u32, lower: f32, unit: f32, more: f32) -> u32 {
    begin_candidates(lane);
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let row = mine.first + i * WORKGROUP + lane;
        if row < mine.end {
            let end = approx_of(FIRST_ROW + row) + (error[FIRST_ROW + row] * unit + more);
            if end < lower {
                rule_out(lower - end);
            } else {
                add_candidate(row);
            }
        }
    }
    return count_candidates(lane);
}
