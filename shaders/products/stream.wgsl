// Epilogue: adds the rows to the residual stream x. Also quantises x times the weight of the norm that
// comes next, and sums its squares, for norm.wgsl: so the products after the norm need not norm their
// input. See quantize_results.wgsl. A workgroup has 32 rows.

@group(0) @binding(EPILOGUE_AT) var<storage, read> norm_weight: array<f32>;     // [ALL_ROWS]
@group(0) @binding(EPILOGUE_AT + 1u) var<storage, read_write> x: array<f32>;    // [ALL_ROWS]
// See put_in_stream.wgsl.
@group(0) @binding(EPILOGUE_AT + 2u) var<storage, read_write> stream: array<u32>;

const_assert TEAMS * EACH == 32u && N_ROWS % 32u == 0u;

const STREAM_ROWS: u32 = ALL_ROWS;

var<workgroup> after_adding: array<f32, 32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = lane / LANES * EACH;
    let row = group.x * 32u + first;
    let mine = lane % LANES; // index among the team's rows
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
    let at_four = lane % 8u * 4u;
    let four = vec4f(
        after_adding[at_four],
        after_adding[at_four + 1u],
        after_adding[at_four + 2u],
        after_adding[at_four + 3u],
    );
    let squares = eight_sum_f32(lane, square_of(four));
    put_in_stream(FIRST_ROW / 4u + group.x * 8u + lane, quantized, squares, lane < 8u);
}
