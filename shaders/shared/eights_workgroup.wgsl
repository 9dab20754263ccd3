// Reductions over every eight neighbouring lanes, in workgroup memory. Every lane gets the result.
// The whole workgroup must call each function. Twin of eights_subgroup.wgsl, which adds in the same
// order.

var<workgroup> eights: array<u32, WORKGROUP>;

// The values of the eight lanes to which this lane belongs, as bits.
fn eight_values(lane: u32, value: u32) -> array<u32, 8> {
    eights[lane] = value;
    workgroupBarrier();
    var all: array<u32, 8>;
    for (var i = 0u; i < 8u; i++) {
        all[i] = eights[lane - lane % 8u + i];
    }
    workgroupBarrier();
    return all;
}

// No `value` may be negative.
fn eight_max_f32(lane: u32, value: f32) -> f32 {
    let all = eight_values(lane, bitcast<u32>(value));
    var v = 0.0;
    for (var i = 0u; i < 8u; i++) {
        v = max(v, bitcast<f32>(all[i]));
    }
    return v;
}

// The words of every four neighbouring lanes, in their order.
fn words_of_four(lane: u32, word: u32) -> vec4u {
    let all = eight_values(lane, word);
    return select(
        vec4u(all[0], all[1], all[2], all[3]),
        vec4u(all[4], all[5], all[6], all[7]),
        lane % 8u >= 4u,
    );
}

// For each TYPE of f32, i32

fn eight_sum_TYPE(lane: u32, value: TYPE) -> TYPE {
    let all = eight_values(lane, bitcast<u32>(value));
    let a = bitcast<vec4<TYPE>>(vec4u(all[0], all[1], all[2], all[3]));
    let b = bitcast<vec4<TYPE>>(vec4u(all[4], all[5], all[6], all[7]));
    return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}
