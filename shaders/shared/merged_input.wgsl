// The outputs of attention as input for normed_input.wgsl: the mean of a token's parts, each weighed with
// its share of the sum of exponentials. Four parts at a time, so that their loads overlap.
//
// The kernel declares step; part, `array<vec4f>` [n_tokens, n_splits, N_HEAD, HEAD_DIM]; and part_ml,
// `array<vec2f>` [n_tokens, n_splits, N_HEAD]: largest score, sum of exp. K is N_HEAD * HEAD_DIM. A part
// that sees no position counts for nothing, to the bit: one token and several come to the same.

// What the four parts from `split` on count for in a head, whose largest score was `before` so far.
struct Shares {
    largest: f32,
    shrink: f32, // of what was summed before
    share: vec4f,
    total: f32,
}

fn share_parts(first: u32, split: u32, head: u32, before: f32) -> Shares {
    let last = step.n_splits - 1u;
    let ml0 = part_ml[(first + split) * N_HEAD + head];
    let ml1 = part_ml[(first + min(split + 1u, last)) * N_HEAD + head];
    let ml2 = part_ml[(first + min(split + 2u, last)) * N_HEAD + head];
    let ml3 = part_ml[(first + min(split + 3u, last)) * N_HEAD + head];
    let m = vec4f(ml0.x, ml1.x, ml2.x, ml3.x);
    let largest = max(before, max(max(m.x, m.y), max(m.z, m.w)));
    let share = select(vec4f(), exp(m - largest), vec4u(split) + vec4u(0u, 1u, 2u, 3u) <= vec4u(last));
    let total = fma(share.w, ml3.y, fma(share.z, ml2.y, fma(share.y, ml1.y, share.x * ml0.y)));
    return Shares(largest, exp(before - largest), share, total);
}

// The sum of four parts' vectors, onto what was summed before. Not as explicit as the rest: spelt out as
// fma, decoding with 1024 tokens of context is a twentieth slower on an NVIDIA H200.
fn weighed(sum: vec4f, s: Shares, p0: vec4f, p1: vec4f, p2: vec4f, p3: vec4f) -> vec4f {
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
        let p0 = part[(first + split) * (K / 4u) + i];
        let p1 = part[(first + min(split + 1u, last)) * (K / 4u) + i];
        let p2 = part[(first + min(split + 2u, last)) * (K / 4u) + i];
        let p3 = part[(first + min(split + 3u, last)) * (K / 4u) + i];
        let s = share_parts(first, split, head, largest);
        largest = s.largest;
        total = fma(total, s.shrink, s.total);
        sum = weighed(sum, s, p0, p1, p2, p3);
    }
    return sum / total;
}

struct FourParts {
    first: Input,
    second: Input,
    third: Input,
    fourth: Input,
}

fn load_part(row: u32, i: u32) -> Input {
    let at = row * (K / 4u) + i;
    return Input(part[at], part[at + 8u], part[at + 16u], part[at + 24u]);
}

fn load_parts(first: u32, split: u32, i: u32) -> FourParts {
    let last = step.n_splits - 1u;
    return FourParts(
        load_part(first + split, i),
        load_part(first + min(split + 1u, last), i),
        load_part(first + min(split + 2u, last), i),
        load_part(first + min(split + 3u, last), i),
    );
}

fn input(token: u32, i: u32) -> Input {
    if HEAD_DIM % 128u != 0u {
        return Input(input_of(token, i), input_of(token, i + 8u), input_of(token, i + 16u), input_of(token, i + 24u));
    }
    // All of one head.
    let head = 4u * i / HEAD_DIM;
    let first = token * step.n_splits;
    var largest = -1e30;
    var total = 0.0;
    var sum = Input();
    var next = load_parts(first, 0u, i);
    let fours = (step.n_splits + 3u) / 4u;
    for (var four = 0u; four < fours; four++) {
        let split = 4u * four;
        let p = next;
        let s = share_parts(first, split, head, largest);
        // On their way while these are added.
        if split + 4u < step.n_splits {
            next = load_parts(first, split + 4u, i);
        }
        largest = s.largest;
        total = fma(total, s.shrink, s.total);
        sum.a = weighed(sum.a, s, p.first.a, p.second.a, p.third.a, p.fourth.a);
        sum.b = weighed(sum.b, s, p.first.b, p.second.b, p.third.b, p.fourth.b);
        sum.c = weighed(sum.c, s, p.first.c, p.second.c, p.third.c, p.fourth.c);
        sum.d = weighed(sum.d, s, p.first.d, p.second.d, p.third.d, p.fourth.d);
    }
    return Input(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
}
