// x[t] = EMBEDDING_SCALE * embd[tokens[t]], for the tokens whose row is in this shard of a packed embedding.
// See packed.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> w: array<vec4u>;
@group(0) @binding(3) var<storage, read> w_scale: array<u32>;
@group(0) @binding(4) var<storage, read_write> x: array<vec4f>; // [n_tokens, K]

const LANES: u32 = WORKGROUP;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // If a token is below FIRST_ROW, this wraps around, so the result is above N_ROWS too.
    let row = tokens[row_of(group.x).token] - FIRST_ROW;
    if row >= N_ROWS {
        return;
    }
    for (var n = 0u; n < STEPS; n++) {
        let unit = n * WORKGROUP + lane;
        if unit < UNITS {
            let at = (row * UNITS + unit) * VECTORS;
            let a = w[at];
            let b = w[at + VECTORS - 1u];
            for (var i = 0u; i < SIXTEENS; i++) {
                let first = unit * UNIT + 16u * i;
                let codes = sixteen(a, b, i);
                let s = scale_offset(row, first) * EMBEDDING_SCALE;
                let at_x = (group.x * K + first) / 4u;
                x[at_x] = values(codes.x, s);
                x[at_x + 1u] = values(codes.y, s);
                x[at_x + 2u] = values(codes.z, s);
                x[at_x + 3u] = values(codes.w, s);
            }
        }
    }
}
