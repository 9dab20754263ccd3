// Reductions over groups of LANES neighbouring lanes of a workgroup, in workgroup memory. Every
// lane of a group gets the result. LANES is a power of two. The whole workgroup must call each
// function. Twin of lanes_subgroup.wgsl.
//
// The first SECONDS lanes of a group sum FIRSTS values each. Then every lane sums all of these
// sums. Halving the values again and again would take a barrier each time.

const SECONDS: u32 = 1u << (countTrailingZeros(LANES) / 2u);
const FIRSTS: u32 = LANES / SECONDS;
const PARTIALS: u32 = WORKGROUP;

// lanes_subgroup.wgsl has a faster way for two integers.
fn lanes_sum_of_two(lane: u32, value: vec2i) -> vec2i {
    return lanes_sum_vec2i(lane, value);
}

// For each TYPE of f32, i32, vec2f, vec2i, vec4f, vec4i

var<workgroup> partial_sum_TYPE: array<TYPE, PARTIALS>;

fn lanes_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    let first = lane - lane % LANES;
    var v = value;
    if LANES > 1u {
        partial_sum_TYPE[lane] = v;
        workgroupBarrier();
        if lane % LANES < SECONDS {
            // No other lane reads the value that this lane overwrites.
            for (var i = 1u; i < FIRSTS; i++) {
                v += partial_sum_TYPE[lane + i * SECONDS];
            }
            partial_sum_TYPE[lane] = v;
        }
        workgroupBarrier();
        v = partial_sum_TYPE[first];
        for (var i = 1u; i < SECONDS; i++) {
            v += partial_sum_TYPE[first + i];
        }
        workgroupBarrier();
    }
    return v;
}
