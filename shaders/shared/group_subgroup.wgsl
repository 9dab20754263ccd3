
// Reductions over the whole workgroup, with subgroup operations. Every lane gets the result, and
// each call is a barrier for workgroup memory. SUBGROUP is a power of two. Each function may be
// called once, by the whole workgroup. Twin of group_workgroup.wgsl.

const GROUP_PARTIALS: u32 = max(WORKGROUP / SUBGROUP, 1u);
const GROUP_STEP: u32 = min(WORKGROUP, SUBGROUP);
const GROUP_HALVINGS: u32 = countTrailingZeros(GROUP_STEP);

var<workgroup> group_partial_sum_max: array<vec2f, GROUP_PARTIALS>;
// Lanes whose values group_sum_f32 adds, at most. So a sum has one order, whatever WORKGROUP is.
const SUM_LANES: u32 = 256u;
const SUM_PARTIALS: u32 = min(GROUP_PARTIALS, max(SUM_LANES / SUBGROUP, 1u));

var<workgroup> group_partial_sum_f32: array<f32, GROUP_PARTIALS>;
var<workgroup> group_partial_sum_i32: array<i32, GROUP_PARTIALS>;
var<workgroup> group_partial_max_vec2f: array<vec2f, GROUP_PARTIALS>;

// The sum of `value.x` and the largest `value.y`. No `value.y` may be negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    var v = value;
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        v.x += subgroupShuffleXor(v.x, GROUP_STEP >> (i + 1u));
    }
    // Floats that are not negative sort like their bits, and cards have one instruction for the
    // largest integer.
    v.y = bitcast<f32>(subgroupMax(bitcast<u32>(v.y)));
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
    var v = value;
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        v += subgroupShuffleXor(v, GROUP_STEP >> (i + 1u));
    }
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

fn group_max_vec2f(lane: u32, value: vec2f) -> vec2f {
    var v = value;
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        v = max(v, subgroupShuffleXor(v, GROUP_STEP >> (i + 1u)));
    }
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
