// The 32 results of a workgroup, as int8 with one scale: see quantize_group.wgsl and groups.wgsl.

var<workgroup> results: array<f32, 32>;
var<workgroup> sums: array<i32, 8>;

struct Group {
    word: u32, // the lane's, of the group's eight
    largest: f32,
    sum: f32, // of the codes
}

fn quantized_results(lane: u32) -> Group {
    workgroupBarrier();
    var largest = 0.0;
    for (var i = 0u; i < 32u; i++) {
        largest = max(largest, abs(results[i]));
    }
    let first = lane % 8u * 4u;
    let four = vec4f(results[first], results[first + 1u], results[first + 2u], results[first + 3u]);
    let codes = rounded(four, per_scale(largest));
    if lane < 8u {
        sums[lane] = codes.x + codes.y + codes.z + codes.w;
    }
    workgroupBarrier();
    var sum = 0;
    for (var i = 0u; i < 8u; i++) {
        sum += sums[i];
    }
    return Group(packed_bytes(codes), largest, f32(sum));
}
