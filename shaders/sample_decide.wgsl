// Decides which of the listed tokens top-k and top-p accept, and commits the best accepted token of
// all. There is one workgroup. Also empties the sums that earlier kernels add to, for the next
// token.
//
// Tokens are ordered by their logits, and equal ones by their ids. Top-k and top-p each accept the
// first tokens in this order, until they weigh a given sum together. The last of these is the cut.
// For top-k each token weighs 1. A cut is found byte by byte, from its top byte down. For each
// byte, a histogram has the weights of the tokens that agree with the bytes of the cut so far.
// Weights are integers, so the order of additions does not matter.

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> step: Step;
// [1]
@group(0) @binding(2) var<storage, read> border: array<Border>;
// [1]
@group(0) @binding(3) var<storage, read_write> n_undecided: array<u32>;
// [N_VOCAB]: key, id
@group(0) @binding(4) var<storage, read> undecided: array<vec2u>;
// [N_BLOCKS]: bits of the value, id
@group(0) @binding(5) var<storage, read> best: array<vec2u>;
// [chunk]
@group(0) @binding(6) var<storage, read_write> tokens: array<u32>;
// [N_SAMPLED], the latest at the end
@group(0) @binding(7) var<storage, read_write> sampled: array<u32>;
// [1]: key and rank of the last token that can be drawn
@group(0) @binding(8) var<storage, read_write> cut: array<vec2u>;
// [N_BINS]
@group(0) @binding(9) var<storage, read_write> bins: array<vec2u>;

const DIGITS: u32 = 256u;
const KEY_DIGITS: u32 = 4u;
const RANK_DIGITS: u32 = 3u;
// The rank of a token is this number minus its id. Of equal logits, the greatest rank comes first.
const FIRST_RANK: u32 = (1u << (8u * RANK_DIGITS)) - 1u;

const_assert N_VOCAB <= FIRST_RANK;
const_assert WORKGROUP == DIGITS;

const_assert N_BINS % WORKGROUP == 0u;

var<workgroup> histogram: array<atomic<u32>, DIGITS>;
var<workgroup> sums: array<u32, DIGITS>;
var<workgroup> reached_digit: Digit;
var<workgroup> mass_of_accepted: atomic<u32>;

// The digit at which a histogram reaches the sum.
struct Digit {
    digit: u32,
    above: u32,     // the weight of all digits above it
    is_whole: bool, // whether all tokens with this digit are accepted, if their logits are equal
}

struct Search {
    first_bin: u32,
    last_bin: u32,
    unit: f32,      // the weight of a token at the upper end of first_bin; if 0, each token weighs 1
    sum: u32,       // the least weight of all tokens up to the cut together
}

fn rank_of(id: u32) -> u32 {
    return FIRST_RANK - id;
}

fn before_cut(key: u32, id: u32, cut: vec2u) -> bool {
    return key > cut.x || (key == cut.x && rank_of(id) >= cut.y);
}

fn weight_of(below: f32, first_bin: u32, unit: f32) -> u32 {
    return u32(exp((f32(first_bin) - below) / BINS_PER_NAT) * unit + 0.5);
}

// The key and the rank of the last token that is accepted.
fn cut_of(lane: u32, largest: u32, n: u32, search: Search) -> vec2u {
    let repeats = (n + WORKGROUP - 1u) / WORKGROUP;
    var found = vec2u();
    var known = vec2u(); // the bits of `found` that are known
    var sum = search.sum;
    for (var i = 0u; i < KEY_DIGITS + RANK_DIGITS; i++) {
        let is_rank = i >= KEY_DIGITS;
        let shift = select(24u - 8u * i, 48u - 8u * i, is_rank);
        atomicStore(&histogram[lane], 0u);
        workgroupBarrier();
        for (var at = 0u; at < repeats; at++) {
            let index = at * WORKGROUP + lane;
            if index < n {
                let token = undecided[index];
                let order = vec2u(token.x, rank_of(token.y));
                let below = bins_below(largest, token.x);
                let bin = u32(below);
                let belongs = bin >= search.first_bin && bin <= search.last_bin;
                if belongs && all((order & known) == found) {
                    let weight = weight_of(below, search.first_bin, search.unit);
                    let digit = (select(order.x, order.y, is_rank) >> shift) & 255u;
                    // The greatest digit comes first.
                    atomicAdd(&histogram[255u - digit], select(weight, 1u, search.unit == 0.0));
                }
            }
        }
        workgroupBarrier();
        let own = atomicLoad(&histogram[lane]);
        sums[lane] = own;
        for (var j = 0u; j < countTrailingZeros(DIGITS); j++) {
            let other = max(lane, 1u << j) - (1u << j);
            workgroupBarrier();
            let more = sums[other];
            workgroupBarrier();
            if lane >= 1u << j {
                sums[lane] += more;
            }
        }
        // Because of rounding, the sum may not be reached. Then the last token is accepted too.
        let reached = sums[lane];
        if reached - own < sum && (reached >= sum || lane == DIGITS - 1u) {
            let digit = 255u - lane;
            let below = bins_below(largest, found.x + (digit << shift));
            let one = select(weight_of(below, search.first_bin, search.unit), 1u, search.unit == 0.0);
            reached_digit = Digit(digit, reached - own, reached < sum + one);
        }
        let at = workgroupUniformLoad(&reached_digit);
        sum -= at.above;
        let bits = select(vec2u(1u, 0u), vec2u(0u, 1u), is_rank) << vec2u(shift);
        found += bits * at.digit;
        known += bits * 255u;
        // Now the key is known. In most cases only one token has it.
        if i == KEY_DIGITS - 1u && at.is_whole {
            break;
        }
    }
    return found;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    let largest = border[0].greatest;
    let n = n_undecided[0];
    let repeats = (n + WORKGROUP - 1u) / WORKGROUP;
    // The weights of all tokens together stay below 2^32.
    let unit = f32(1u << min(countLeadingZeros(n) - 1u, 23u));
    var k_cut = vec2u();
    var mass = border[0].mass_above_k;
    let k_bin = border[0].k_bin;
    if k_bin < LAST_BIN {
        let search = Search(k_bin, k_bin, 0.0, sampling.top_k - border[0].count_above_k);
        k_cut = cut_of(lane, largest, n, search);
        if lane == 0u {
            atomicStore(&mass_of_accepted, 0u);
        }
        workgroupBarrier();
        for (var i = 0u; i < repeats; i++) {
            let index = i * WORKGROUP + lane;
            if index < n {
                let token = undecided[index];
                let below = bins_below(largest, token.x);
                if u32(below) == k_bin && before_cut(token.x, token.y, k_cut) {
                    atomicAdd(&mass_of_accepted, weight_of(below, k_bin, unit));
                }
            }
        }
        workgroupBarrier();
        let share = f32(atomicLoad(&mass_of_accepted)) / unit;
        mass += share * exp(-f32(k_bin) / BINS_PER_NAT);
    }
    var p_cut = vec2u();
    let p_first = border[0].p_first;
    if p_first < LAST_BIN {
        let rest = sampling.top_p * mass - border[0].mass_above_p;
        let sum = ceil(rest * exp(f32(p_first) / BINS_PER_NAT) * unit);
        let at_least_one = u32(clamp(sum, 1.0, 4e9));
        p_cut = cut_of(
            lane, largest, n, Search(p_first, border[0].p_last, unit, at_least_one));
    }

    let found = best_of_blocks(lane);
    var value = found.value;
    var id = found.id;
    let least = least_key(largest);
    for (var i = 0u; i < repeats; i++) {
        let index = i * WORKGROUP + lane;
        if index < n {
            let token = undecided[index];
            let accepted = before_cut(token.x, token.y, k_cut)
                && before_cut(token.x, token.y, p_cut) && token.x >= least;
            let other = perturbed(largest, token.x, token.y);
            let better = other > value || (other == value && token.y < id);
            if accepted && (better || id == NO_TOKEN) {
                value = other;
                id = token.y;
            }
        }
    }
    if lane == 0u {
        let p_ends_first = p_cut.x > k_cut.x || (p_cut.x == k_cut.x && p_cut.y > k_cut.y);
        let last = select(k_cut, p_cut, p_ends_first);
        cut[0] = select(last, vec2u(least, 0u), last.x < least);
    }
    for (var i = 0u; i < N_BINS / WORKGROUP; i++) {
        bins[i * WORKGROUP + lane] = vec2u();
    }
    commit(lane, value, id);
    // Every lane has read it by now.
    if lane == 0u {
        n_undecided[0] = 0u;
    }
}
