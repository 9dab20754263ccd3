// Writes the residual stream of the step's last token as the input of the products after a norm:
// see put_in_stream.wgsl and quantize_eights.wgsl. A lane takes four values.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;           // [n_tokens, K]
@group(0) @binding(2) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(3) var<storage, read_write> stream: array<u32>;

const STREAM_ROWS: u32 = K;
const FOURS: u32 = K / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = group.x * WORKGROUP + lane;
    let at = min(i, FOURS - 1u);
    let v = x[(step.n_tokens - 1u) * FOURS + at];
    let quantized = quantized_four(lane, v * norm_weight[at]);
    let squares = eight_sum_f32(lane, square_of(v));
    put_in_stream(at, quantized, squares, i < FOURS);
}
