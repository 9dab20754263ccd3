// Computes the logits that rescore_kept left out, of up to two shards, see shards.wgsl, and sorts
// them into the bins of sample_bins. None of them is the greatest logit. If sample_check found that
// the draw does not need them, it ends at once.

// [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read> embd: array<vec2u>;
@group(0) @binding(1) var<uniform> sampling: Sampling;
// [n_vocab], see split_f16
@group(0) @binding(2) var<storage, read> shifts: array<u32>;
// [K]
@group(0) @binding(3) var<storage, read> x: array<vec4f>;
// [1]: see sample_check
@group(0) @binding(4) var<storage, read> rest: array<u32>;
// [N_GREATEST]: keys
@group(0) @binding(5) var<storage, read> greatest: array<u32>;
// [n_vocab]: bits of the logits
@group(0) @binding(6) var<storage, read_write> logits: array<u32>;
// [N_BINS, 2]
@group(0) @binding(7) var<storage, read_write> bins: array<atomic<u32>>;
// the second shard
@group(0) @binding(8) var<storage, read> embd_1: array<vec2u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if rest[0] == 0u {
        return;
    }
    mine = rows_of_group(group.x, VOCAB_BLOCK);
    let largest = greatest_of_all(lane);
    begin_candidates(lane);
    for (var i = 0u; i < VOCAB_BLOCK / WORKGROUP; i++) {
        let row = mine.first + i * WORKGROUP + lane;
        if row < mine.end && logits[FIRST_ROW + row] == NOT_A_NUMBER {
            add_candidate(row);
        }
    }
    let n = count_candidates(lane);
    let repeats = (n + TEAMS - 1u) / TEAMS;
    for (var i = 0u; i < repeats; i++) {
        let candidate = score(lane, i * TEAMS, n);
        let key = key_of(candidate.logit);
        if candidate.counts && key != 0u {
            logits[candidate.id] = bitcast<u32>(candidate.logit);
            let below = bins_below(largest, key);
            let bin = u32(below);
            atomicAdd(&bins[2u * bin], 1u);
            atomicAdd(&bins[2u * bin + 1u], missing(below - f32(bin)));
        }
    }
}
