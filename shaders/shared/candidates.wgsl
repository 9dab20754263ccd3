// The rows of a workgroup that could matter, by what the upper bytes say of them: the candidates. They are
// computed again from all of their bytes. src/kernels/rescore.rs has the proof.
//
// The kernel declares embd, embd_1, x, shifts, error, and approx_of(id): the approximate value of a row.

const_assert EACH == 1u;

const_assert SHARD_2 == N_ROWS;

// The rows of the workgroup.
var<private> mine: Rows;

fn eight_bytes(at: u32) -> vec2u {
    if SHARD_1 < N_ROWS && mine.shard == 1u {
        return embd_1[at];
    }
    return embd[at];
}

const LOWEST: f32 = -3.4e38;

var<workgroup> n_found: atomic<u32>;
var<workgroup> n_candidates: u32;
var<workgroup> candidates: array<u32, VOCAB_BLOCK>;

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

// Lists the candidates of the workgroup: the rows whose upper ends are not below `lower`. A row's bound
// is its error times `unit`, and `more`. Returns how many they are. Their order varies. Called once, by
// the whole workgroup.
fn find_candidates(lane: u32, lower: f32, unit: f32, more: f32) -> u32 {
    if lane == 0u {
        atomicStore(&n_found, 0u);
    }
    workgroupBarrier();
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let row = mine.first + i * WORKGROUP + lane;
        if row < mine.end {
            let bound = error[FIRST_ROW + row] * unit + more;
            if !(approx_of(FIRST_ROW + row) + bound < lower) {
                candidates[atomicAdd(&n_found, 1u)] = row;
            }
        }
    }
    workgroupBarrier();
    if lane == 0u {
        n_candidates = atomicLoad(&n_found);
    }
    return workgroupUniformLoad(&n_candidates);
}

struct Candidate {
    id: u32,
    logit: f32,
    counts: bool, // in one lane for each candidate
}

// The candidates number `first` to `first` + SLOTS, of `n`. Called by the whole workgroup.
fn score(lane: u32, first: u32, n: u32) -> Candidate {
    let slot = first + lane / LANES;
    var sum = 0.0;
    var row = 0u;
    if slot < n {
        row = candidates[slot];
        sum = split_sum(row - mine.start, FIRST_ROW + row, lane % LANES);
    }
    let logit = lanes_sum_f32(lane, sum);
    return Candidate(FIRST_ROW + row, logit, lane % LANES == 0u && slot < n);
}
