// The 32 results of a workgroup, as int8 with one scale: see quantize_group.wgsl and groups.wgsl.

var<workgroup> results: array<f32, 32>;
var<workgroup> sums: array<i32, 8>;

struct Group {
    word: u32, // the lane's, of the first eight
    largest: f32,
    sum: f32, // of the codes
}

// For the first eight lanes. Others get nothing: reading the results takes them time too.
fn quantized_results(lane: u32) -> Group {
    workgroupBarrier();
    var largest = 0.0;
    var word = 0u;
    if lane < 8u {
        for (var i = 0u; i < 32u; i++) {
            largest = max(largest, abs(results[i]));
        }
        let at = 4u * lane;
        let four = vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]);
        let codes = rounded(four, per_scale(largest));
        sums[lane] = codes.x + codes.y + codes.z + codes.w;
        word = packed_bytes(codes);
    }
    workgroupBarrier();
    var sum = 0;
    if lane == 0u {
        for (var i = 0u; i < 8u; i++) {
            sum += sums[i];
        }
    }
    return Group(word, largest, f32(sum));
}
