// Reductions over every eight neighbouring lanes, with subgroup operations. Every lane gets the
// result. Subgroups have eight lanes or more. The whole workgroup must call each function. Twin of
// eights_workgroup.wgsl. lanes_subgroup.wgsl says why near lanes are swapped instead of shuffled.

// No `value` may be negative.
fn eight_max_f32(lane: u32, value: f32) -> f32 {
    var v = max(value, quadSwapX(value));
    v = max(v, quadSwapY(v));
    return max(v, subgroupShuffleXor(v, 4u));
}

// The words of every four neighbouring lanes, in their order.
fn words_of_four(lane: u32, word: u32) -> vec4u {
    let other = quadSwapX(word);
    let two = select(vec2u(word, other), vec2u(other, word), lane % 2u == 1u);
    let others = quadSwapY(two);
    return select(vec4u(two, others), vec4u(others, two), lane % 4u >= 2u);
}

// For each TYPE of f32, i32

fn eight_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = value + quadSwapX(value);
    v += quadSwapY(v);
    return v + subgroupShuffleXor(v, 4u);
}
