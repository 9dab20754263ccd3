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

var<workgroup> partial_sum_f32: array<f32, PARTIALS>;
var<workgroup> partial_sum_i32: array<i32, PARTIALS>;
var<workgroup> partial_sum_vec2f: array<vec2f, PARTIALS>;
var<workgroup> partial_sum_vec2i: array<vec2i, PARTIALS>;
var<workgroup> partial_sum_vec4i: array<vec4i, PARTIALS>;
var<workgroup> partial_sum_vec4f: array<vec4f, PARTIALS>;

fn lanes_sum_f32(lane: u32, value: f32) -> f32 {
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
            partial_sum_f32[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = 0.0;
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_f32[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_i32(lane: u32, value: i32) -> i32 {
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
            partial_sum_i32[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = 0;
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_i32[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

// Integers have the same sum in any order. Cards have one operation for the sum over a whole
// subgroup.
fn lanes_sum_vec2i(lane: u32, value: vec2i) -> vec2i {
    if LANES == SUBGROUP {
        return subgroupAdd(value);
    }
    if 2u * LANES == SUBGROUP {
        let is_first = lane % SUBGROUP < LANES;
        let first = subgroupAdd(select(vec2i(), value, is_first));
        let second = subgroupAdd(select(value, vec2i(), is_first));
        return select(second, first, is_first);
    }
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
            partial_sum_vec2i[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = vec2i();
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_vec2i[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec4i(lane: u32, value: vec4i) -> vec4i {
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
            partial_sum_vec4i[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = vec4i();
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_vec4i[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec2f(lane: u32, value: vec2f) -> vec2f {
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
            partial_sum_vec2f[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = vec2f();
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_vec2f[first + i];
        }
        workgroupBarrier();
    }
    return v;
}

fn lanes_sum_vec4f(lane: u32, value: vec4f) -> vec4f {
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
            partial_sum_vec4f[lane / SUBGROUP] = v;
        }
        workgroupBarrier();
        let first = lane / LANES * PARTIALS_PER_GROUP;
        v = vec4f();
        for (var i = 0u; i < PARTIALS_PER_GROUP; i++) {
            v += partial_sum_vec4f[first + i];
        }
        workgroupBarrier();
    }
    return v;
}
