// x += FACTOR * W q for one token, where x is the residual stream. Also quantises x times the weight
// of the norm that comes next, and sums its squares: see stream_input.wgsl. So the products after
// the norm need not norm their input. See packed_slots.wgsl and quantize_results.wgsl. A workgroup
// has 32 rows.
//
// The kernel declares norm_weight, `array<f32>` [ALL_ROWS]; x, `array<f32>` [ALL_ROWS]; y,
// `array<u32>` [ALL_ROWS / 4] int8; and y_scale, `array<vec2f>` [2][ALL_ROWS / 32]: scale, and scale
// times the sum of y; then the sum of the squares of x, and nothing.

const_assert SLOTS * EACH == 32u && N_ROWS % 32u == 0u;

var<workgroup> stream: array<f32, 32>;

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
        stream[first + mine] = after;
        results[first + mine] = after * weight;
    }
    let group_at = FIRST_ROW / 32u + group.x;
    let quantized = quantize_results(lane, group_at);
    if lane == 0u {
        var squares = 0.0;
        for (var i = 0u; i < 8u; i++) {
            let four =
                vec4f(stream[4u * i], stream[4u * i + 1u], stream[4u * i + 2u], stream[4u * i + 3u]);
            squares += square_of(four);
        }
        let scale = quantized.largest / 127.0;
        y_scale[group_at] = vec2f(scale, scale * quantized.sum);
        y_scale[ALL_ROWS / 32u + group_at] = vec2f(squares, 0.0);
    }
}
