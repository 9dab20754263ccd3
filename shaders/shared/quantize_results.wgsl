// Quantises the 32 results of a workgroup to int8 with one scale: see quantize_eights.wgsl and
// groups.wgsl.

var<workgroup> results: array<f32, 32>;

// The whole workgroup calls this when the results are written. The first eight lanes get the words
// in their order.
fn quantized_results(lane: u32) -> Quantized {
    workgroupBarrier();
    let at = lane % 8u * 4u;
    return quantized_four(
        lane,
        vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]),
    );
}
