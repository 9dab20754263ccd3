// Finds the bins in which top-k and top-p end. Tokens above these bins are accepted, and each
// vocabulary block gives the best of them, as sample_best does. Tokens in these bins are listed for
// sample_decide. Every workgroup finds the same bins.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> step: Step;
// [N_VOCAB]
@group(0) @binding(2) var<storage, read> logits: array<f32>;
// [N_GREATEST]: keys
@group(0) @binding(3) var<storage, read> greatest: array<u32>;
// [N_BINS]: see sample_bins
@group(0) @binding(4) var<storage, read> bins: array<vec2u>;
// [N_BLOCKS]: bits of the value, id
@group(0) @binding(5) var<storage, read_write> best: array<vec2u>;
// [1]
@group(0) @binding(6) var<storage, read_write> n_undecided: array<atomic<u32>>;
// [N_VOCAB]: key, id
@group(0) @binding(7) var<storage, read_write> undecided: array<vec2u>;
// [1]
@group(0) @binding(8) var<storage, read_write> border: array<Border>;

var<workgroup> k_bin: atomic<u32>;
var<workgroup> p_first: atomic<u32>;
var<workgroup> p_last: atomic<u32>;

fn find_border(lane: u32, largest: u32) -> Border {
    if lane == 0u {
        atomicStore(&k_bin, LAST_BIN);
        atomicStore(&p_first, LAST_BIN);
        atomicStore(&p_last, LAST_BIN);
    }
    sum_up(lane);
    workgroupBarrier();
    if sampling.top_k > 0u {
        for (var i = 0u; i < BINS_EACH; i++) {
            let bin = lane * BINS_EACH + i;
            if count_to[bin] >= sampling.top_k {
                atomicMin(&k_bin, bin);
            }
        }
    }
    workgroupBarrier();
    let k = atomicLoad(&k_bin);
    if sampling.top_p < 1.0 {
        // Top-p is a share of the weight of all tokens that top-k accepts. Top-k may accept only
        // some tokens of bin k, so its tokens weigh at least mass_above(k) and at most mass_to[k].
        let at_least = sampling.top_p * mass_above(k) * (1.0 - SUM_ERROR);
        let at_most = sampling.top_p * mass_to[k] * (1.0 + SUM_ERROR);
        for (var i = 0u; i < BINS_EACH; i++) {
            let bin = lane * BINS_EACH + i;
            if mass_to[bin] >= at_least {
                atomicMin(&p_first, bin);
            }
            if mass_to[bin] >= at_most {
                atomicMin(&p_last, bin);
            }
        }
    }
    workgroupBarrier();
    let p = atomicLoad(&p_first);
    // No token beyond top-k is accepted.
    let last = min(atomicLoad(&p_last), k);
    return Border(largest, k, count_above(k), mass_above(k), p, last, mass_above(p));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let largest = greatest_of_all(lane);
    let least = least_key(largest);
    let found = find_border(lane, largest);
    let accepted = min(found.k_bin, found.p_first);
    var value = 0.0;
    var token = NO_TOKEN;
    for (var n = 0u; n < VOCAB_BLOCK / WORKGROUP; n++) {
        let id = group.x * VOCAB_BLOCK + n * WORKGROUP + lane;
        let key = key_of(logits[min(id, N_VOCAB - 1u)]);
        let bin = u32(bins_below(largest, key));
        if id < N_VOCAB && key != 0u && bin < LAST_BIN {
            if bin < accepted {
                let v = perturbed(largest, key, id);
                // Ids ascend, so the lowest id wins among equals.
                if key >= least && (token == NO_TOKEN || v > value) {
                    value = v;
                    token = id;
                }
            } else if bin == found.k_bin || (bin >= found.p_first && bin <= found.p_last) {
                undecided[atomicAdd(&n_undecided[0], 1u)] = vec2u(key, id);
            }
        }
    }
    reduce(lane, value, token);
    if lane == 0u {
        best[group.x] = vec2u(bitcast<u32>(values[0]), ids[0]);
        if group.x == 0u {
            border[0] = found;
        }
    }
}
