// Reductions over groups of LANES neighbouring lanes of a workgroup, in workgroup memory. Every
// lane of a group gets the result. LANES is a power of two. The whole workgroup must call each
// function. Twin of lanes_subgroup.wgsl.
//
// The first SECONDS lanes of a group sum FIRSTS values each. Then every lane sums all of these
// sums. Halving the values again and again would take a barrier each time.

const SECONDS: u32 = 1u << (countTrailingZeros(LANES) / 2u);
const FIRSTS: u32 = LANES / SECONDS;
const PARTIALS: u32 = WORKGROUP;

var<workgroup> partial_sum_f32: array<f32, PARTIALS>;
var<workgroup> partial_sum_i32: array<i32, PARTIALS>;
var<workgroup> partial_sum_vec2i: array<vec2i, PARTIALS>;
var<workgroup> partial_sum_vec4i: array<vec4i, PARTIALS>;
var<workgroup> partial_sum_vec2f: array<vec2f, PARTIALS>;
var<workgroup> partial_sum_vec4f: array<vec4f, PARTIALS>;

fn lanes_sum_f32(lane: u32, value: f32) -> f32 {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_f32[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_f32[lane + i * SECONDS];
            }
            partial_sum_f32[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_f32[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_f32[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_i32(lane: u32, value: i32) -> i32 {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_i32[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_i32[lane + i * SECONDS];
            }
            partial_sum_i32[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_i32[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_i32[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec2i(lane: u32, value: vec2i) -> vec2i {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_vec2i[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_vec2i[lane + i * SECONDS];
            }
            partial_sum_vec2i[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_vec2i[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_vec2i[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec4i(lane: u32, value: vec4i) -> vec4i {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_vec4i[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_vec4i[lane + i * SECONDS];
            }
            partial_sum_vec4i[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_vec4i[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_vec4i[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec2f(lane: u32, value: vec2f) -> vec2f {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_vec2f[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_vec2f[lane + i * SECONDS];
            }
            partial_sum_vec2f[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_vec2f[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_vec2f[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec4f(lane: u32, value: vec4f) -> vec4f {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_vec4f[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_vec4f[lane + i * SECONDS];
            }
            partial_sum_vec4f[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_vec4f[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_vec4f[first + i];
        }
        workgroupBarrier();
    }
    return v;
}
