// x += FACTOR * W q for one token, where x is the residual stream. Also quantises x times the weight
// of the norm that comes next, and sums its squares: see stream_input.wgsl. So the products after
// the norm need not norm their input. See packed_slots.wgsl and quantize_results.wgsl. A workgroup
// has 32 rows.
//
// The kernel declares norm_weight, `array<f32>` [ALL_ROWS]; x, `array<f32>` [ALL_ROWS]; and stream,
// `array<u32>`, the words that stream_input.wgsl reads.

const_assert SLOTS * EACH == 32u && N_ROWS % 32u == 0u;

const SCALES_AT: u32 = (ALL_ROWS + 511u) / 512u * 128u;
const SQUARES_AT: u32 = SCALES_AT + ALL_ROWS / 16u;

var<workgroup> after_adding: array<f32, 32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = lane / LANES * EACH;
    let row = group.x * 32u + first;
    let mine = lane % LANES; // index among the slot's rows
    let at = FIRST_ROW + row + min(mine, EACH - 1u);
    // Loaded together with the codes: at the end the lanes would have to wait.
    let before = x[at];
    let weight = norm_weight[at];
    let v = products(lane, row + vec4u(0u, 1u, 2u, 3u));
    if mine < EACH {
        let after = fma(FACTOR, v[mine], before);
        x[at] = after;
        after_adding[first + mine] = after;
        results[first + mine] = after * weight;
    }
    let group_at = FIRST_ROW / 32u + group.x;
    let quantized = quantized_results(lane);
    if lane < 8u {
        stream[four_at(group_at * 8u + lane)] = quantized.word;
    }
    if lane == 0u {
        let scale = quantized.largest / 127.0;
        stream[SCALES_AT + 2u * group_at] = bitcast<u32>(scale);
        stream[SCALES_AT + 2u * group_at + 1u] = bitcast<u32>(scale * quantized.sum);
    }
    // A lane that has nothing else to do.
    if lane == WORKGROUP - 1u {
        var squares = 0.0;
        for (var i = 0u; i < 8u; i++) {
            let at = 4u * i;
            let four = vec4f(
                after_adding[at],
                after_adding[at + 1u],
                after_adding[at + 2u],
                after_adding[at + 3u],
            );
            squares += square_of(four);
        }
        stream[SQUARES_AT + group_at] = bitcast<u32>(squares);
    }
}
