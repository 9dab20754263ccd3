// The gated activation of one token, quantised to int8 with a scale for each 32: gate and up are
// rows times the normed and quantised x. See normed_packed.wgsl and quantize_group.wgsl. A slot has
// a row of gate and the same row of up, and a workgroup has 32 rows.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;
@group(0) @binding(1) var<storage, read> w_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4f>;             // [K]
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4f>;   // [K]
@group(0) @binding(4) var<storage, read_write> y: array<u32>;         // [ALL_ROWS / 4] int8
// [ALL_ROWS / 32]: scale, and scale times the sum of y
@group(0) @binding(5) var<storage, read_write> y_scale: array<vec2f>;

const_assert SLOTS == 32u && N_ROWS % 32u == 0u;

var<workgroup> results: array<f32, SLOTS>;
var<workgroup> sums: array<i32, 8>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * SLOTS + lane / LANES;
    let v = products(lane, vec2u(row, N_ROWS + row));
    if lane % LANES == 0u {
        results[lane / LANES] = gated(v.x, v.y);
    }
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
        y[(FIRST_ROW + group.x * 32u) / 4u + lane] = packed_bytes(codes);
    }
    workgroupBarrier();
    if lane == 0u {
        var sum = 0;
        for (var i = 0u; i < 8u; i++) {
            sum += sums[i];
        }
        let scale = largest / 127.0;
        y_scale[(FIRST_ROW + group.x * 32u) / 32u] = vec2f(scale, scale * f32(sum));
    }
}
