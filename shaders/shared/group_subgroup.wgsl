
// Reductions over the whole workgroup, with subgroup operations. Every lane gets the result, and each
// call is a barrier for workgroup memory. SUBGROUP is a power of two; each function may be called
// once, by the whole workgroup. Twin of group_workgroup.wgsl.

const GROUP_PARTIALS: u32 = max(WORKGROUP / SUBGROUP, 1u);
const GROUP_STEP: u32 = min(WORKGROUP, SUBGROUP);

var<workgroup> group_partial_sum_max: array<vec2f, GROUP_PARTIALS>;
var<workgroup> group_partial_sum_i32: array<i32, GROUP_PARTIALS>;
var<workgroup> group_partial_max_vec4f: array<vec4f, GROUP_PARTIALS>;

// The sum of `value.x` and the largest `value.y`, none of which is negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    var v = value;
    for (var mask = GROUP_STEP / 2u; mask > 0u; mask /= 2u) {
        v.x += subgroupShuffleXor(v.x, mask);
    }
    // Floats that are not negative are ordered like their bits, and cards have one instruction for those.
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

fn group_max_vec4f(lane: u32, value: vec4f) -> vec4f {
    var v = value;
    for (var mask = GROUP_STEP / 2u; mask > 0u; mask /= 2u) {
        v = max(v, subgroupShuffleXor(v, mask));
    }
    if lane % SUBGROUP == 0u {
        group_partial_max_vec4f[lane / SUBGROUP] = v;
    }
    workgroupBarrier();
    v = group_partial_max_vec4f[0];
    for (var i = 1u; i < GROUP_PARTIALS; i++) {
        v = max(v, group_partial_max_vec4f[i]);
    }
    return v;
}
