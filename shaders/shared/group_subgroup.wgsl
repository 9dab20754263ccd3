
// Reductions over the whole workgroup, with subgroup operations. Every lane gets the result, and
// each call is a barrier for workgroup memory. SUBGROUP is a power of two. Each function may be
// called once, by the whole workgroup. Twin of group_workgroup.wgsl.
//
// lanes_subgroup.wgsl says why the nearest lanes are swapped instead of shuffled.

const GROUP_PARTIALS: u32 = max(WORKGROUP / SUBGROUP, 1u);
const GROUP_STEP: u32 = min(WORKGROUP, SUBGROUP);
const GROUP_SHUFFLES: u32 = max(countTrailingZeros(GROUP_STEP), 2u) - 2u;

var<workgroup> group_partial_sum_max: array<vec2f, GROUP_PARTIALS>;
// The most lanes whose values group_sum_f32 adds. With this limit, a sum has one order for every
// WORKGROUP. Integers have the same sum in any order.
const SUM_LANES: u32 = 256u;
const SUM_PARTIALS_f32: u32 = min(GROUP_PARTIALS, max(SUM_LANES / SUBGROUP, 1u));
const SUM_PARTIALS_i32: u32 = GROUP_PARTIALS;

fn subgroup_sum_f32(value: f32) -> f32 {
    var v = value;
    for (var i = 0u; i < GROUP_SHUFFLES; i++) {
        v += subgroupShuffleXor(v, GROUP_STEP >> (i + 1u));
    }
    if GROUP_STEP >= 4u {
        v += quadSwapY(v);
    }
    if GROUP_STEP >= 2u {
        v += quadSwapX(v);
    }
    return v;
}

// The sum of `value.x` and the largest `value.y`. No `value.y` may be negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    // Floats that are not negative sort as their bits do, and cards have one instruction for the
    // largest integer.
    var v = vec2f(subgroup_sum_f32(value.x), bitcast<f32>(subgroupMax(bitcast<u32>(value.y))));
    if lane % SUBGROUP == 0u {
        group_partial_sum_max[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_sum_max[0];
    for (var i = 1u; i < GROUP_PARTIALS; i++) {
        let other = group_partial_sum_max[i];
        v = vec2f(v.x + other.x, max(v.y, other.y));
    }
    return v;
}

fn subgroup_sum_i32(value: i32) -> i32 {
    return subgroupAdd(value);
}

// Integers that sort as the floats with these bits. Called again, it gives the bits back.
fn sorted(bits: i32) -> i32 {
    return bits ^ ((bits >> 31u) & 0x7fffffff);
}

fn subgroup_max_f32(value: f32) -> f32 {
    return bitcast<f32>(sorted(subgroupMax(sorted(bitcast<i32>(value)))));
}

fn subgroup_max_vec2f(value: vec2f) -> vec2f {
    return vec2f(subgroup_max_f32(value.x), subgroup_max_f32(value.y));
}

// For each TYPE of f32, i32

var<workgroup> group_partial_sum_TYPE: array<TYPE, GROUP_PARTIALS>;

// The sum of the values; of floats, of the first SUM_LANES.
fn group_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = subgroup_sum_TYPE(value);
    if lane % SUBGROUP == 0u {
        group_partial_sum_TYPE[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_sum_TYPE[0];
    for (var i = 1u; i < SUM_PARTIALS_TYPE; i++) {
        v += group_partial_sum_TYPE[i];
    }
    return v;
}

// For each TYPE of f32, vec2f

var<workgroup> group_partial_max_TYPE: array<TYPE, GROUP_PARTIALS>;

fn group_max_TYPE(lane: u32, value: TYPE) -> TYPE {
    var v = subgroup_max_TYPE(value);
    if lane % SUBGROUP == 0u {
        group_partial_max_TYPE[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_max_TYPE[0];
    for (var i = 1u; i < GROUP_PARTIALS; i++) {
        v = max(v, group_partial_max_TYPE[i]);
    }
    return v;
}
