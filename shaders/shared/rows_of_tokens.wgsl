// The end of a kernel that multiplies rows with TOKENS tokens at a time. MATRICES = 1: y[token][row] =
// product, or y[token][row] += product if ADD. MATRICES = 2: the rows come in pairs, gate and up, and
// y[token][row] = activation(gate) * up.
//
// The kernel declares Sum, a vector of one sum for each token; finished(sum, token, row, matrix), the
// product by a token's sum; step; FACTOR, which multiplies all products; and y [n_tokens, ALL_ROWS].

const ROWS: u32 = TEAMS / MATRICES; // rows of y in one workgroup

const_assert EACH == 1u;
const_assert TOKENS == 1u || TOKENS == 4u; // the components of a vector

var<workgroup> sums: array<Sum, TEAMS>;

fn store(token: u32, row: u32, v: f32) {
    let at = token * ALL_ROWS + row;
    if ADD {
        y[at] = fma(FACTOR, v, y[at]);
    } else {
        y[at] = FACTOR * v;
    }
}

// Stores the rows of a workgroup, from the shard's row first on, for at most TOKENS tokens from token on. Every
// lane of a team has the sum of its row.
fn store_rows(lane: u32, first: u32, token: u32, sum: Sum) {
    let n_tokens = min(TOKENS, step.n_tokens - token);
    let team = lane / LANES;
    if MATRICES == 1u {
        if lane % LANES == 0u && first + team < N_ROWS {
            let row = FIRST_ROW + first + team;
            for (var i = 0u; i < n_tokens; i++) {
                store(token + i, row, finished(sum[i], token + i, row, 0u));
            }
        }
    } else {
        if lane % LANES == 0u {
            sums[team] = sum;
        }
        workgroupBarrier();
        if lane < ROWS && first + lane < N_ROWS {
            let row = FIRST_ROW + first + lane;
            let gate = sums[lane];
            let up = sums[ROWS + lane];
            for (var i = 0u; i < n_tokens; i++) {
                let t = token + i;
                let v = gated(finished(gate[i], t, row, 0u), finished(up[i], t, row, 1u));
                store(t, row, v);
            }
        }
    }
}
