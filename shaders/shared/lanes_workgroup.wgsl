// Reductions over groups of LANES neighbouring lanes of a workgroup, in workgroup memory. Every
// lane of a group gets the result. LANES is a power of two. The whole workgroup must call each
// function. Twin of lanes_subgroup.wgsl.

const HALVINGS: u32 = countTrailingZeros(LANES);
const PARTIALS: u32 = WORKGROUP;

var<workgroup> partial_sum_f32: array<f32, PARTIALS>;
var<workgroup> partial_sum_i32: array<i32, PARTIALS>;
var<workgroup> partial_sum_vec2f: array<vec2f, PARTIALS>;
var<workgroup> partial_sum_vec4i: array<vec4i, PARTIALS>;
var<workgroup> partial_sum_vec4f: array<vec4f, PARTIALS>;

fn lanes_sum_f32(lane: u32, value: f32) -> f32 {
    partial_sum_f32[lane] = value;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = LANES >> (i + 1u);
        workgroupBarrier();
        if lane % LANES < half {
            partial_sum_f32[lane] += partial_sum_f32[lane + half];
        }
    }
    workgroupBarrier();
    let v = partial_sum_f32[lane - lane % LANES];
    workgroupBarrier();
    return v;
}

fn lanes_sum_i32(lane: u32, value: i32) -> i32 {
    partial_sum_i32[lane] = value;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = LANES >> (i + 1u);
        workgroupBarrier();
        if lane % LANES < half {
            partial_sum_i32[lane] += partial_sum_i32[lane + half];
        }
    }
    workgroupBarrier();
    let v = partial_sum_i32[lane - lane % LANES];
    workgroupBarrier();
    return v;
}

fn lanes_sum_vec4i(lane: u32, value: vec4i) -> vec4i {
    partial_sum_vec4i[lane] = value;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = LANES >> (i + 1u);
        workgroupBarrier();
        if lane % LANES < half {
            partial_sum_vec4i[lane] += partial_sum_vec4i[lane + half];
        }
    }
    workgroupBarrier();
    let v = partial_sum_vec4i[lane - lane % LANES];
    workgroupBarrier();
    return v;
}

fn lanes_sum_vec2f(lane: u32, value: vec2f) -> vec2f {
    partial_sum_vec2f[lane] = value;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = LANES >> (i + 1u);
        workgroupBarrier();
        if lane % LANES < half {
            partial_sum_vec2f[lane] += partial_sum_vec2f[lane + half];
        }
    }
    workgroupBarrier();
    let v = partial_sum_vec2f[lane - lane % LANES];
    workgroupBarrier();
    return v;
}

fn lanes_sum_vec4f(lane: u32, value: vec4f) -> vec4f {
    partial_sum_vec4f[lane] = value;
    for (var i = 0u; i < HALVINGS; i++) {
        let half = LANES >> (i + 1u);
        workgroupBarrier();
        if lane % LANES < half {
            partial_sum_vec4f[lane] += partial_sum_vec4f[lane + half];
        }
    }
    workgroupBarrier();
    let v = partial_sum_vec4f[lane - lane % LANES];
    workgroupBarrier();
    return v;
}
