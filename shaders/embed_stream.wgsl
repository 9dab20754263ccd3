// x = EMBEDDING_SCALE * embd[token] for the step's only token, if its row is in this shard of a
// packed embedding. Also writes x as the input of the products after a norm. See packed.wgsl,
// put_in_stream.wgsl and quantize_eights.wgsl. A lane takes four values.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> w: array<vec4u>;
@group(0) @binding(3) var<storage, read> w_scale: array<u32>;
@group(0) @binding(4) var<storage, read> norm_weight: array<vec4f>;  // [K]
@group(0) @binding(5) var<storage, read_write> x: array<vec4f>;      // [K]
@group(0) @binding(6) var<storage, read_write> stream: array<u32>;

const LANES: u32 = WORKGROUP;
const STREAM_ROWS: u32 = K;
const FOURS: u32 = K / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // If a token is below FIRST_ROW, this wraps around, so the result is above N_ROWS too.
    let wanted = tokens[step.rows[0].token] - FIRST_ROW;
    let row = min(wanted, N_ROWS - 1u);
    let i = group.x * WORKGROUP + lane;
    let at = min(i, FOURS - 1u);
    let is_mine = wanted < N_ROWS && i < FOURS;
    let unit = (row * UNITS + at * 4u / UNIT) * VECTORS;
    let codes = sixteen(w[unit], w[unit + VECTORS - 1u], at / 4u % SIXTEENS);
    let v = values(codes[at % 4u], scale_offset(row, at * 4u) * EMBEDDING_SCALE);
    if is_mine {
        x[at] = v;
    }
    let quantized = quantized_four(lane, v * norm_weight[at]);
    let squares = eight_sum_f32(lane, square_of(v));
    put_in_stream(at, quantized, squares, is_mine);
}
