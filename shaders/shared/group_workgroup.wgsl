
// Reductions over the whole workgroup, in workgroup memory. Every lane gets the result, and each
// call is a barrier for workgroup memory. Each function may be called once, by the whole
// workgroup. Twin of group_subgroup.wgsl.

var<workgroup> group_partial_sum_max: array<vec2f, WORKGROUP>;
var<workgroup> group_partial_sum_i32: array<i32, WORKGROUP>;
var<workgroup> group_partial_max_vec4f: array<vec4f, WORKGROUP>;

// The sum of `value.x` and the largest `value.y`, none of which is negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    group_partial_sum_max[lane] = value;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            let v = group_partial_sum_max[lane];
            let other = group_partial_sum_max[lane + half];
            group_partial_sum_max[lane] = vec2f(v.x + other.x, max(v.y, other.y));
        }
    }
    workgroupBarrier();
    return group_partial_sum_max[0];
}

fn group_sum_i32(lane: u32, value: i32) -> i32 {
    group_partial_sum_i32[lane] = value;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            group_partial_sum_i32[lane] += group_partial_sum_i32[lane + half];
        }
    }
    workgroupBarrier();
    return group_partial_sum_i32[0];
}

fn group_max_vec4f(lane: u32, value: vec4f) -> vec4f {
    group_partial_max_vec4f[lane] = value;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            group_partial_max_vec4f[lane] = max(group_partial_max_vec4f[lane], group_partial_max_vec4f[lane + half]);
        }
    }
    workgroupBarrier();
    return group_partial_max_vec4f[0];
}
