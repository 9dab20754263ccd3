
// Reductions over the whole workgroup, in workgroup memory. Every lane gets the result, and each
// call is a barrier for workgroup memory. Each function may be called once, by the whole
// workgroup. Twin of group_subgroup.wgsl.
//
// The first GROUP_SECONDS lanes reduce GROUP_FIRSTS values each. Then every lane reduces all of
// these results. Halving the values again and again would take a barrier each time.

const GROUP_SECONDS: u32 = 1u << (countTrailingZeros(WORKGROUP) / 2u);
const GROUP_FIRSTS: u32 = WORKGROUP / GROUP_SECONDS;

var<workgroup> group_partial_sum_max: array<vec2f, WORKGROUP>;
// The most lanes whose values group_sum_f32 adds. A workgroup has no more lanes here.
const SUM_LANES: u32 = 256u;
const_assert WORKGROUP <= SUM_LANES;

fn sum_max(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x + b.x, max(a.y, b.y));
}

// The sum of `value.x` and the largest `value.y`. No `value.y` may be negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    var v = value;
    group_partial_sum_max[lane] = v;
    workgroupBarrier();
    if lane < GROUP_SECONDS {
        for (var i = 1u; i < GROUP_FIRSTS; i++) {
            v = sum_max(v, group_partial_sum_max[lane + i * GROUP_SECONDS]);
        }
        group_partial_sum_max[lane] = v;
    }
    workgroupBarrier();
    v = group_partial_sum_max[0];
    for (var i = 1u; i < GROUP_SECONDS; i++) {
        v = sum_max(v, group_partial_sum_max[i]);
    }
    return v;
}

// For each TYPE of f32, i32

var<workgroup> group_partial_sum_TYPE: array<TYPE, WORKGROUP>;

// The sum of the first SUM_LANES values.
fn group_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = value;
    group_partial_sum_TYPE[lane] = v;
    workgroupBarrier();
    if lane < GROUP_SECONDS {
        for (var i = 1u; i < GROUP_FIRSTS; i++) {
            v += group_partial_sum_TYPE[lane + i * GROUP_SECONDS];
        }
        group_partial_sum_TYPE[lane] = v;
    }
    workgroupBarrier();
    v = group_partial_sum_TYPE[0];
    for (var i = 1u; i < GROUP_SECONDS; i++) {
        v += group_partial_sum_TYPE[i];
    }
    return v;
}

// For each TYPE of f32, vec2f

var<workgroup> group_partial_max_TYPE: array<TYPE, WORKGROUP>;

fn group_max_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = value;
    group_partial_max_TYPE[lane] = v;
    workgroupBarrier();
    if lane < GROUP_SECONDS {
        for (var i = 1u; i < GROUP_FIRSTS; i++) {
            v = max(v, group_partial_max_TYPE[lane + i * GROUP_SECONDS]);
        }
        group_partial_max_TYPE[lane] = v;
    }
    workgroupBarrier();
    v = group_partial_max_TYPE[0];
    for (var i = 1u; i < GROUP_SECONDS; i++) {
        v = max(v, group_partial_max_TYPE[i]);
    }
    return v;
}
