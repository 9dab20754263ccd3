// y = x / sqrt(mean(x²) + EPS) * weight, for all tokens of the step if ALL_TOKENS, else for the
// last one.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;       // [n_tokens, N]
@group(0) @binding(2) var<storage, read> weight: array<f32>;  // [N]
@group(0) @binding(3) var<storage, read_write> y: array<f32>; // [N] or [n_tokens, N]

const VALUES: u32 = (N + WORKGROUP - 1u) / WORKGROUP; // values of each lane

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = select(step.n_tokens - 1u, group.x, ALL_TOKENS) * N;
    var squares = 0.0;
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < N {
            squares += x[row + i] * x[row + i];
        }
    }
    let scale = inverseSqrt(group_sum_max(lane, vec2f(squares, 0.0)).x / f32(N) + EPS);
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < N {
            y[group.x * N + i] = x[row + i] * scale * weight[i];
        }
    }
}
