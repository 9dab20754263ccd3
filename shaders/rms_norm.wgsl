// y = x / sqrt(mean(x²) + EPS) * weight, for the last token of the step.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;       // [n_tokens, N]
@group(0) @binding(2) var<storage, read> weight: array<f32>;  // [N]
@group(0) @binding(3) var<storage, read_write> y: array<f32>; // [N]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    let row = (step.n_tokens - 1u) * N;
    var squares = 0.0;
    for (var i = lane; i < N; i += WORKGROUP) {
        squares += x[row + i] * x[row + i];
    }
    let scale = inverseSqrt(group_sum_max(lane, vec2f(squares, 0.0)).x / f32(N) + EPS);
    for (var i = lane; i < N; i += WORKGROUP) {
        y[i] = x[row + i] * scale * weight[i];
    }
}
