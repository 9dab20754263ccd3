// Merges the splits of attention into the input of normed_input.wgsl. merged.wgsl says what the
// kernel declares for this.

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
    let last = n_splits() - 1u;
    var splits: FourSplits;
    splits.first = load_split(first + split, i);
    if !SINGLE {
        splits.second = load_split(first + min(split + 1u, last), i);
        splits.third = load_split(first + min(split + 2u, last), i);
        splits.fourth = load_split(first + min(split + 3u, last), i);
    }
    return splits;
}

fn input(token: u32, i: u32) -> Input {
    if HEAD_DIM % 128u != 0u {
        var parts: array<vec4f, 4>;
        for (var part = 0u; part < 4u; part++) {
            parts[part] = merged(token, i + 8u * part);
        }
        return Input(parts[0], parts[1], parts[2], parts[3]);
    }
    // The four vectors belong to one head.
    let head = 4u * i / HEAD_DIM;
    let first = token * n_splits();
    var largest = -1e30;
    var total = 0.0;
    var sum = Input();
    var next = load_splits(first, 0u, i);
    let fours = select((n_splits() + 3u) / 4u, 1u, MAX_SPLITS <= 4u);
    for (var four = 0u; four < fours; four++) {
        let split = 4u * four;
        let p = next;
        let s = shares_of(first, split, head, largest);
        // The next splits are loaded while these are added.
        if MAX_SPLITS > 4u && split + 4u < n_splits() {
            next = load_splits(first, split + 4u, i);
        }
        largest = s.largest;
        total = fma(total, s.shrink, s.total);
        sum.a = weighted(sum.a, s, p.first.a, p.second.a, p.third.a, p.fourth.a);
        sum.b = weighted(sum.b, s, p.first.b, p.second.b, p.third.b, p.fourth.b);
        sum.c = weighted(sum.c, s, p.first.c, p.second.c, p.third.c, p.fourth.c);
        sum.d = weighted(sum.d, s, p.first.d, p.second.d, p.third.d, p.fourth.d);
    }
    let share = 1.0 / total;
    return Input(sum.a * share, sum.b * share, sum.c * share, sum.d * share);
}
