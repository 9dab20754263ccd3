// Reductions over groups of LANES neighbouring lanes of a workgroup, with subgroup operations.
// Every lane of a group gets the result. LANES and SUBGROUP are powers of two. The whole workgroup
// must call each function. Twin of lanes_workgroup.wgsl.
//
// Lanes exchange values with distant lanes first, by shuffles. Chromium adds a check to each
// shuffle. It adds none to swaps of lanes that are two apart or one, which come last.

const LANES_PER_STEP: u32 = min(LANES, SUBGROUP);
const SHUFFLES: u32 = max(countTrailingZeros(LANES_PER_STEP), 2u) - 2u;
const PARTIALS: u32 = max(WORKGROUP / SUBGROUP, 1u);
const PARTIALS_PER_GROUP: u32 = LANES / LANES_PER_STEP;

// Integers have the same sum in any order. Cards have one operation for the sum over a whole
// subgroup.
fn lanes_sum_of_two(lane: u32, value: vec2i) -> vec2i {
    if LANES == SUBGROUP {
        return subgroupAdd(value);
    }
    if 2u * LANES == SUBGROUP {
        let is_first = lane % SUBGROUP < LANES;
        let first = subgroupAdd(select(vec2i(), value, is_first));
        let second = subgroupAdd(select(value, vec2i(), is_first));
        return select(second, first, is_first);
    }
    return lanes_sum_vec2i(lane, value);
}

// For each TYPE of f32, i32, vec2f, vec2i, vec4f, vec4i

var<workgroup> partial_sum_TYPE: array<TYPE, PARTIALS>;

fn lanes_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = value;
    for (var i = 0u; i < SHUFFLES; i++) {
        v += subgroupShuffleXor(v, LANES_PER_STEP >> (i + 1u));
    }
    if LANES_PER_STEP >= 4u {
        v += quadSwapY(v);
    }
    if LANES_PER_STEP >= 2u {
        v += quadSwapX(v);
    }
    if PARTIALS_PER_GROUP > 1u {
        if lane % SUBGROUP == 0u {
            partial_sum_TYPE[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = TYPE();
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_TYPE[first + i];
        }
        workgroupBarrier();
    }
    return v;
}
