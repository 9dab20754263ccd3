// Computes the logits of the rows that top-k, top-p and min-p may keep, as gemv_lm_head does. The
// rows are those of up to two shards, see shards.wgsl. The other rows are ruled out, and their
// logits become NaN. Approximate logits and their bounds say which rows may be kept.
// src/kernels/rescore_kept.rs has the proof.

// [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read> embd: array<vec2u>;
@group(0) @binding(1) var<uniform> sampling: Sampling;
// [n_vocab], see split_f16
@group(0) @binding(2) var<storage, read> shifts: array<u32>;
// [K]
@group(0) @binding(3) var<storage, read> x: array<vec4f>;
// [n_vocab], see split_f16
@group(0) @binding(4) var<storage, read> error: array<f32>;
// [N_LEADS]: the approximate logit of a row, and the row's error
@group(0) @binding(5) var<storage, read> leads: array<vec2f>;
// [n_vocab]: the bits of the approximate logits, which are replaced by those of the logits
@group(0) @binding(6) var<storage, read_write> logits: array<u32>;
// [3, N_BLOCKS]. First, the key of each block's greatest logit. Second, the most that the block's
// rows without a logit can weigh together, as bits; a row at the limit weighs 1. Third, the limit,
// as bits.
@group(0) @binding(7) var<storage, read_write> greatest: array<u32>;
// the second shard
@group(0) @binding(8) var<storage, read> embd_1: array<vec2u>;

const OWN_LEADS: u32 = (N_LEADS + WORKGROUP - 1u) / WORKGROUP;

// The number of upper bits of a key that are searched. The lower bits are taken as 0, which makes
// the value lower.
const KEY_BITS: u32 = 20u;

var<private> own_leads: array<u32, OWN_LEADS>; // keys of the lower ends of the lane's leads
var<private> own_ruled_out: f32; // the most that the lane's rows without a logit can weigh together
var<workgroup> greatest_of_block: atomic<u32>;

// Whether top-p is used without top-k. If so, the weight of the rows without a logit matters too.
fn takes_share_of_all() -> bool {
    return sampling.top_p < 1.0 && sampling.top_k == 0u;
}

fn approx_of(id: u32) -> f32 {
    return bitcast<f32>(logits[id]);
}

fn rule_out(below: f32) {
    if takes_share_of_all() {
        own_ruled_out += exp(-below * sampling.inverse_temperature);
    }
}

// Reads the lane's leads. Returns the greatest of their lower ends.
fn take_leads(lane: u32, norm: f32) -> f32 {
    var greatest_end = LOWEST;
    for (var n = 0u; n < OWN_LEADS; n++) {
        let i = n * WORKGROUP + lane;
        own_leads[n] = 0u;
        if i < N_LEADS && norm < MAX_NORM {
            let end = leads[i].x - leads[i].y * norm;
            own_leads[n] = key_of(end);
            if end > greatest_end {
                greatest_end = end;
            }
        }
    }
    return greatest_end;
}

// A lower bound of the top_k-th greatest logit: at least top_k leads have lower ends that are not
// below it. Called once, by the whole workgroup.
fn least_of_top_k(lane: u32) -> f32 {
    var found = 0u;
    for (var i = 0u; i < KEY_BITS; i++) {
        let next = found | (0x80000000u >> i);
        var own = 0;
        for (var n = 0u; n < OWN_LEADS; n++) {
            own += select(0, 1, own_leads[n] >= next);
        }
        if u32(group_sum_i32(lane, own)) >= sampling.top_k {
            found = next;
        }
        workgroupBarrier(); // so that every lane has read its sum before the next one is made
    }
    if found < key_of(LOWEST) {
        return LOWEST;
    }
    return value_of(found);
}

// The limit: rows whose upper ends are below it change no draw. With top-p alone they may change
// it, and sample_check finds out. Called once, by the whole workgroup.
fn least_kept(lane: u32, norm: f32) -> f32 {
    let greatest_end = group_max_f32(lane, take_leads(lane, norm));
    var least = LOWEST;
    if sampling.top_p >= 1.0 {
        least = max(greatest_end, -MAX_VALUE) - sampling.reach;
    }
    if takes_share_of_all() {
        least = max(greatest_end, -MAX_VALUE) - NATS / sampling.inverse_temperature;
    }
    if sampling.top_k > 0u {
        let end = least_of_top_k(lane);
        least = max(least, end - (BIN_AND_MORE / sampling.bins_per_logit + ROUNDING * abs(end)));
    }
    return least;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    mine = rows_of_group(group.x, VOCAB_BLOCK);
    if lane == 0u {
        atomicStore(&greatest_of_block, 0u);
    }
    let norm = norm_of_x(lane);
    let least = least_kept(lane, norm);
    let n = find_candidates(lane, least, norm, 0.0);
    let ruled_out = group_sum_f32(lane, own_ruled_out);
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let row = mine.first + i * WORKGROUP + lane;
        if row < mine.end {
            logits[FIRST_ROW + row] = NOT_A_NUMBER;
        }
    }
    storageBarrier(); // NaN is written before the logits of candidates
    let repeats = (n + TEAMS - 1u) / TEAMS;
    for (var i = 0u; i < repeats; i++) {
        let candidate = score(lane, i * TEAMS, n);
        if candidate.counts {
            logits[candidate.id] = bitcast<u32>(candidate.logit);
            atomicMax(&greatest_of_block, key_of(candidate.logit));
        }
    }
    workgroupBarrier();
    if lane == 0u {
        let block = FIRST_GROUP + group.x;
        greatest[block] = atomicLoad(&greatest_of_block);
        greatest[N_BLOCKS + block] = bitcast<u32>(ruled_out);
        greatest[2u * N_BLOCKS + block] = bitcast<u32>(least);
    }
}
