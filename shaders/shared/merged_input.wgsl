// Merges the splits of attention into the input of normed_input.wgsl: the mean over a token's
// splits, each weighted with its share of the sum of exponentials. It takes four splits at a time,
// so that their loads overlap.
//
// The kernel declares step; partial_sums, `array<vec4f>` [n_tokens, n_splits, N_HEAD, HEAD_DIM];
// and partial_max_total, `array<vec2f>` [n_tokens, n_splits, N_HEAD]: largest score, sum of exp. K
// is N_HEAD * HEAD_DIM. A split that sees no position changes no bit of the result. So a token
// gives the same bits in a step of one token and in a step of several.

// The weights of the four splits from `split` on, for one head. `before` is the largest score of
// the earlier splits.
struct Shares {
    largest: f32,
    shrink: f32, // factor of the sums so far
    share: vec4f,
    total: f32,
}

fn shares_of(first: u32, split: u32, head: u32, before: f32) -> Shares {
    let last = step.n_splits - 1u;
    let ml0 = partial_max_total[(first + split) * N_HEAD + head];
    let ml1 = partial_max_total[(first + min(split + 1u, last)) * N_HEAD + head];
    let ml2 = partial_max_total[(first + min(split + 2u, last)) * N_HEAD + head];
    let ml3 = partial_max_total[(first + min(split + 3u, last)) * N_HEAD + head];
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
    return sum * s.shrink + s.share.x * p0 + s.share.y * p1 + s.share.z * p2 + s.share.w * p3;
}

fn input_of(token: u32, i: u32) -> vec4f {
    let head = 4u * i / HEAD_DIM;
    let first = token * step.n_splits;
    let last = step.n_splits - 1u;
    var largest = -1e30;
    var total = 0.0;
    var sum = vec4f();
    let fours = (step.n_splits + 3u) / 4u;
    for (var four = 0u; four < fours; four++) {
        let split = 4u * four;
        let p0 = partial_sums[(first + split) * (K / 4u) + i];
        let p1 = partial_sums[(first + min(split + 1u, last)) * (K / 4u) + i];
        let p2 = partial_sums[(first + min(split + 2u, last)) * (K / 4u) + i];
        let p3 = partial_sums[(first + min(split + 3u, last)) * (K / 4u) + i];
        let s = shares_of(first, split, head, largest);
        largest = s.largest;
        total = fma(total, s.shrink, s.total);
        sum = weighted(sum, s, p0, p1, p2, p3);
    }
    return sum / total;
}

struct FourSplits {
    first: Input,
    second: Input,
    third: Input,
    fourth: Input,
}

fn load_split(row: u32, i: u32) -> Input {
    let at = row * (K / 4u) + i;
    return Input(
        partial_sums[at],
        partial_sums[at + 8u],
        partial_sums[at + 16u],
        partial_sums[at + 24u],
    );
}

fn load_splits(first: u32, split: u32, i: u32) -> FourSplits {
    let last = step.n_splits - 1u;
    return FourSplits(
        load_split(first + split, i),
        load_split(first + min(split + 1u, last), i),
        load_split(first + min(split + 2u, last), i),
        load_split(first + min(split + 3u, last), i),
    );
}

fn input(token: u32, i: u32) -> Input {
    if HEAD_DIM % 128u != 0u {
        return Input(
            input_of(token, i),
            input_of(token, i + 8u),
            input_of(token, i + 16u),
            input_of(token, i + 24u),
        );
    }
    // The four vectors belong to one head.
    let head = 4u * i / HEAD_DIM;
    let first = token * step.n_splits;
    var largest = -1e30;
    var total = 0.0;
    var sum = Input();
    var next = load_splits(first, 0u, i);
    let fours = (step.n_splits + 3u) / 4u;
    for (var four = 0u; four < fours; four++) {
        let split = 4u * four;
        let p = next;
        let s = shares_of(first, split, head, largest);
        // Load the next splits while these are added.
        if split + 4u < step.n_splits {
            next = load_splits(first, split + 4u, i);
        }
        largest = s.largest;
        total = fma(total, s.shrink, s.total);
        sum.a = weighted(sum.a, s, p.first.a, p.second.a, p.third.a, p.fourth.a);
        sum.b = weighted(sum.b, s, p.first.b, p.second.b, p.third.b, p.fourth.b);
        sum.c = weighted(sum.c, s, p.first.c, p.second.c, p.third.c, p.fourth.c);
        sum.d = weighted(sum.d, s, p.first.d, p.second.d, p.third.d, p.fourth.d);
    }
    return Input(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
}
