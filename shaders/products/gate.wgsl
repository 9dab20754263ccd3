// Epilogue: the gated activation, quantised to int8 with a scale for each 32, see quantize_results.wgsl.
// The FACTOR of gate and up is 1 in every model, so it is not applied.
// A team has one or two rows of gate and the same rows of up, and a workgroup has 32 of each.

@group(0) @binding(EPILOGUE_AT) var<storage, read_write> y: array<u32>; // [ALL_ROWS / 4] int8
// [ALL_ROWS / 32]: scale, and scale times the sum of y
@group(0) @binding(EPILOGUE_AT + 1u) var<storage, read_write> y_scale: array<vec2f>;

const PAIRS: u32 = EACH / 2u; // of a team

const_assert TEAMS * PAIRS == 32u && N_ROWS % 32u == 0u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pair = lane / LANES * PAIRS;
    let row = group.x * 32u + pair;
    let v = products(lane, vec4u(row, N_ROWS + row, row + 1u, N_ROWS + row + 1u));
    if lane % LANES == 0u {
        results[pair] = gated(v.x, v.y);
        if PAIRS == 2u {
            results[pair + 1u] = gated(v.z, v.w);
        }
    }
    let at = FIRST_ROW / 32u + group.x;
    let quantized = quantized_results(lane);
    if lane < 8u {
        y[four_at(at * 8u + lane)] = quantized.word;
    }
    if lane == 0u {
        y_scale[at] = vec2f(quantized.scale, quantized.scaled_sum);
    }
}
