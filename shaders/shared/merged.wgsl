// Merges the splits of attention. The result is the mean over a token's splits, each weighted with
// its share of the sum of exponentials. It takes four splits at a time, so that their loads
// overlap.
//
// The kernel declares step; partial_sums, `array<vec4f>` [n_tokens, n_splits, N_HEAD, HEAD_DIM];
// and partial_max_total, `array<vec2f>` [n_tokens, n_splits, N_HEAD]: largest score, sum of exp. K
// is N_HEAD * HEAD_DIM. If a split sees no position, it changes no bit of the result. So a token
// gives the same bits in a step of one token and in a step of several.
//
// The pipeline is for steps with at most MAX_SPLITS splits, which is 1, 4 or 12.

const SINGLE: bool = MAX_SPLITS == 1u;

fn n_splits() -> u32 {
    if SINGLE {
        return 1u;
    }
    return step.n_splits;
}

// The weights of the four splits from `split` on, for one head. `before` is the largest score of
// the earlier splits.
struct Shares {
    largest: f32,
    shrink: f32, // factor that makes the sums so far smaller
    share: vec4f,
    total: f32,
}

fn shares_of(first: u32, split: u32, head: u32, before: f32) -> Shares {
    let last = n_splits() - 1u;
    let ml0 = partial_max_total[(first + split) * N_HEAD + head];
    var ml1 = ml0;
    var ml2 = ml0;
    var ml3 = ml0;
    if !SINGLE {
        ml1 = partial_max_total[(first + min(split + 1u, last)) * N_HEAD + head];
        ml2 = partial_max_total[(first + min(split + 2u, last)) * N_HEAD + head];
        ml3 = partial_max_total[(first + min(split + 3u, last)) * N_HEAD + head];
    }
    let m = vec4f(ml0.x, ml1.x, ml2.x, ml3.x);
    let largest = max(before, max(max(m.x, m.y), max(m.z, m.w)));
    let share =
        select(vec4f(), exp(m - largest), vec4u(split) + vec4u(0u, 1u, 2u, 3u) <= vec4u(last));
    let total = fma(share.w, ml3.y, fma(share.z, ml2.y, fma(share.y, ml1.y, share.x * ml0.y)));
    return Shares(largest, exp(before - largest), share, total);
}

// Adds the weighted vectors of four splits to the sum. Only here drivers may choose how to fuse
// operations: with explicit fma, decoding with 1024 tokens of context is 5 % slower on an NVIDIA
// H200.
fn weighted(sum: vec4f, s: Shares, p0: vec4f, p1: vec4f, p2: vec4f, p3: vec4f) -> vec4f {
    let v = sum * s.shrink + s.share.x * p0;
    if SINGLE {
        return v;
    }
    return v + s.share.y * p1 + s.share.z * p2 + s.share.w * p3;
}

// A vector of the outputs, from the splits so far.
struct Splits {
    sum: vec4f, // not divided by the total yet
    total: f32,
    largest: f32,
}

fn add_four(before: Splits, first: u32, split: u32, i: u32) -> Splits {
    let last = n_splits() - 1u;
    let p0 = partial_sums[(first + split) * (K / 4u) + i];
    var p1 = vec4f();
    var p2 = vec4f();
    var p3 = vec4f();
    if !SINGLE {
        p1 = partial_sums[(first + min(split + 1u, last)) * (K / 4u) + i];
        p2 = partial_sums[(first + min(split + 2u, last)) * (K / 4u) + i];
        p3 = partial_sums[(first + min(split + 3u, last)) * (K / 4u) + i];
    }
    let s = shares_of(first, split, 4u * i / HEAD_DIM, before.largest);
    let total = fma(before.total, s.shrink, s.total);
    return Splits(weighted(before.sum, s, p0, p1, p2, p3), total, s.largest);
}

// Vector `i` of a token's outputs. There are at most 12 splits. With a loop over them an NVIDIA
// H200 decodes a 4B slower by 3 %. It seems that a loop waits for everything that was loaded before
// it.
fn merged(token: u32, i: u32) -> vec4f {
    let first = token * n_splits();
    var v = add_four(Splits(vec4f(), 0.0, -1e30), first, 0u, i);
    if MAX_SPLITS > 4u && n_splits() > 4u {
        v = add_four(v, first, 4u, i);
    }
    if MAX_SPLITS > 8u && n_splits() > 8u {
        v = add_four(v, first, 8u, i);
    }
    return v.sum * (1.0 / v.total); // one division instead of four
}
