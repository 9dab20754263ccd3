
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
// WORKGROUP.
const SUM_LANES: u32 = 256u;
const SUM_PARTIALS: u32 = min(GROUP_PARTIALS, max(SUM_LANES / SUBGROUP, 1u));

var<workgroup> group_partial_sum_f32: array<f32, GROUP_PARTIALS>;
var<workgroup> group_partial_sum_i32: array<i32, GROUP_PARTIALS>;
var<workgroup> group_partial_max_f32: array<f32, GROUP_PARTIALS>;
var<workgroup> group_partial_max_vec2f: array<vec2f, GROUP_PARTIALS>;

fn subgroup_sum(value: f32) -> f32 {
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
    var v = vec2f(subgroup_sum(value.x), bitcast<f32>(subgroupMax(bitcast<u32>(value.y))));
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

// The sum of the first SUM_LANES values.
fn group_sum_f32(lane: u32, value: f32) -> f32 {
    var v = subgroup_sum(value);
    if lane % SUBGROUP == 0u {
        group_partial_sum_f32[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_sum_f32[0];
    for (var i = 1u; i < SUM_PARTIALS; i++) {
        v += group_partial_sum_f32[i];
    }
    return v;
}

fn group_sum_i32(lane: u32, value: i32) -> i32 {
    var v = subgroupAdd(value);
    if lane % SUBGROUP == 0u {
        group_partial_sum_i32[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = 0;
    for (var i = 0u; i < GROUP_PARTIALS; i++) {
        v += group_partial_sum_i32[i];
    }
    return v;
}

// Integers that sort as the floats with these bits. Called again, it gives the bits back.
fn sorted(bits: i32) -> i32 {
    return bits ^ ((bits >> 31u) & 0x7fffffff);
}

fn subgroup_max(value: f32) -> f32 {
    return bitcast<f32>(sorted(subgroupMax(sorted(bitcast<i32>(value)))));
}

fn group_max_f32(lane: u32, value: f32) -> f32 {
    var v = subgroup_max(value);
    if lane % SUBGROUP == 0u {
        group_partial_max_f32[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_max_f32[0];
    for (var i = 1u; i < GROUP_PARTIALS; i++) {
        v = max(v, group_partial_max_f32[i]);
    }
    return v;
}

fn group_max_vec2f(lane: u32, value: vec2f) -> vec2f {
    var v = vec2f(subgroup_max(value.x), subgroup_max(value.y));
    if lane % SUBGROUP == 0u {
        group_partial_max_vec2f[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_max_vec2f[0];
    for (var i = 1u; i < GROUP_PARTIALS; i++) {
        v = max(v, group_partial_max_vec2f[i]);
    }
    return v;
}
