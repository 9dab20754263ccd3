// Merges the splits of attention: the mean over a token's splits, each weighted with its share of
// the sum of exponentials. It takes four splits at a time, so that their loads overlap.
//
// The kernel declares step; partial_sums, `array<vec4f>` [n_tokens, n_splits, N_HEAD, HEAD_DIM];
// and partial_max_total, `array<vec2f>` [n_tokens, n_splits, N_HEAD]: largest score, sum of exp. K
// is N_HEAD * HEAD_DIM. A split that sees no position changes no bit of the result. So a token
// gives the same bits in a step of one token and in a step of several.
//
// SPLITS is the number of splits in the steps that the pipeline is for. Only these are loaded. SPLITS is 0
// if the pipeline is for any number.

const_assert SPLITS <= 4u; // merged_input.wgsl then adds four once

// Which of four splits are loaded besides the first.
const SECOND: bool = SPLITS != 1u;
const THIRD: bool = SPLITS == 0u || SPLITS > 2u;
const FOURTH: bool = SPLITS == 0u || SPLITS > 3u;

fn n_splits() -> u32 {
    if SPLITS > 0u {
        return SPLITS;
    }
    return step.n_splits;
}

// The weights of the four splits from `split` on, for one head. `before` is the largest score of
// the earlier splits.
struct Shares {
    largest: f32,
    shrink: f32, // factor of the sums so far
    share: vec4f,
    total: f32,
}

fn shares_of(first: u32, split: u32, head: u32, before: f32) -> Shares {
    let last = n_splits() - 1u;
    let ml0 = partial_max_total[(first + split) * N_HEAD + head];
    var ml1 = ml0;
    var ml2 = ml0;
    var ml3 = ml0;
    if SECOND {
        ml1 = partial_max_total[(first + min(split + 1u, last)) * N_HEAD + head];
    }
    if THIRD {
        ml2 = partial_max_total[(first + min(split + 2u, last)) * N_HEAD + head];
    }
    if FOURTH {
        ml3 = partial_max_total[(first + min(split + 3u, last)) * N_HEAD + head];
    }
    let m = vec4f(ml0.x, ml1.x, ml2.x, ml3.x);
    let largest = max(before, max(max(m.x, m.y), max(m.z, m.w)));
    let share =
        select(vec4f(), exp(m - largest), vec4u(split) + vec4u(0u, 1u, 2u, 3u) <= vec4u(last));
    let total = fma(share.w, ml3.y, fma(share.z, ml2.y, fma(share.y, ml1.y, share.x * ml0.y)));
    return Shares(largest, exp(before - largest), share, total);
}

// Adds the weighted vectors of four splits to the sum. Only here do drivers choose the operations:
// with explicit fma, decoding with 1024 tokens of context is a twentieth slower on an NVIDIA H200.
fn weighted(sum: vec4f, s: Shares, p0: vec4f, p1: vec4f, p2: vec4f, p3: vec4f) -> vec4f {
    var v = sum * s.shrink + s.share.x * p0;
    if SECOND {
        v += s.share.y * p1;
    }
    if THIRD {
        v += s.share.z * p2;
    }
    if FOURTH {
        v += s.share.w * p3;
    }
    return v;
}

// A vector of the splits so far.
struct Splits {
    sum: vec4f, // not divided by the total
    total: f32,
    largest: f32,
}

fn add_four(before: Splits, first: u32, split: u32, i: u32) -> Splits {
    let last = n_splits() - 1u;
    let p0 = partial_sums[(first + split) * (K / 4u) + i];
    var p1 = vec4f();
    var p2 = vec4f();
    var p3 = vec4f();
    if SECOND {
        p1 = partial_sums[(first + min(split + 1u, last)) * (K / 4u) + i];
    }
    if THIRD {
        p2 = partial_sums[(first + min(split + 2u, last)) * (K / 4u) + i];
    }
    if FOURTH {
        p3 = partial_sums[(first + min(split + 3u, last)) * (K / 4u) + i];
    }
    let s = shares_of(first, split, 4u * i / HEAD_DIM, before.largest);
    let total = fma(before.total, s.shrink, s.total);
    return Splits(weighted(before.sum, s, p0, p1, p2, p3), total, s.largest);
}

// Vector `i` of a token's outputs. There are 12 splits at most. With a loop over them an NVIDIA H200
// decodes a 4B slower by 3 %: it seems that a loop waits for all that was loaded before it.
fn merged(token: u32, i: u32) -> vec4f {
    let first = token * n_splits();
    var v = add_four(Splits(vec4f(), 0.0, -1e30), first, 0u, i);
    if n_splits() > 4u {
        v = add_four(v, first, 4u, i);
    }
    if n_splits() > 8u {
        v = add_four(v, first, 8u, i);
    }
    return v.sum * (1.0 / v.total); // one division instead of four
}
