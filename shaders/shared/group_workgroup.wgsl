
// Reductions over the whole workgroup, in workgroup memory. Every lane gets the result, and each
// call is a barrier for workgroup memory. Each function may be called once, by the whole
// workgroup. Twin of group_subgroup.wgsl.

const GROUP_HALVINGS: u32 = countTrailingZeros(WORKGROUP);

var<workgroup> group_partial_sum_max: array<vec2f, WORKGROUP>;
var<workgroup> group_partial_sum_i32: array<i32, WORKGROUP>;
var<workgroup> group_partial_max_vec2f: array<vec2f, WORKGROUP>;

// The sum of `value.x` and the largest `value.y`. No `value.y` may be negative.
fn group_sum_max(lane: u32, value: vec2f) -> vec2f {
    group_partial_sum_max[lane] = value;
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        let half = WORKGROUP >> (i + 1u);
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
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            group_partial_sum_i32[lane] += group_partial_sum_i32[lane + half];
        }
    }
    workgroupBarrier();
    return group_partial_sum_i32[0];
}

fn group_max_vec2f(lane: u32, value: vec2f) -> vec2f {
    group_partial_max_vec2f[lane] = value;
    for (var i = 0u; i < GROUP_HALVINGS; i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            group_partial_max_vec2f[lane] =
                max(group_partial_max_vec2f[lane], group_partial_max_vec2f[lane + half]);
        }
    }
    workgroupBarrier();
    return group_partial_max_vec2f[0];
}
