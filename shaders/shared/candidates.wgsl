// The candidates are the rows of a workgroup that could matter. Their logits are computed from all
// of their bytes.
//
// The kernel declares embd, embd_1, x and shifts.

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

var<workgroup> n_found: atomic<u32>;
var<workgroup> n_candidates: u32;
var<workgroup> candidates: array<u32, VOCAB_BLOCK>;

// Begins the list of candidates. Called once, by the whole workgroup.
fn begin_candidates(lane: u32) {
    if lane == 0u {
        atomicStore(&n_found, 0u);
    }
    workgroupBarrier();
}

fn add_candidate(row: u32) {
    candidates[atomicAdd(&n_found, 1u)] = row;
}

// The number of candidates. Their order varies. Called once, by the whole workgroup.
fn count_candidates(lane: u32) -> u32 {
    workgroupBarrier();
    if lane == 0u {
        n_candidates = atomicLoad(&n_found);
    }
    return workgroupUniformLoad(&n_candidates);
}

struct Candidate {
    id: u32,
    logit: f32,
    counts: bool, // true in one lane for each candidate
}

// Computes the candidates number `first` to `first` + TEAMS, of `n`. Called by the whole workgroup.
fn score(lane: u32, first: u32, n: u32) -> Candidate {
    let nth = first + lane / LANES;
    var sum = 0.0;
    var row = 0u;
    if nth < n {
        row = candidates[nth];
        sum = split_sum(row - mine.start, FIRST_ROW + row, lane % LANES);
    }
    let logit = lanes_sum_f32(lane, sum);
    return Candidate(FIRST_ROW + row, logit, lane % LANES == 0u && nth < n);
}
