// y[t] = activation(gate) * up, where row t of `gate_up` has all values of gate and then those of up.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> gate_up: array<f32>; // [n_tokens, 2 * N]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [n_tokens, N]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < N && id.y < step.n_tokens {
        let row = id.y * 2u * N;
        y[id.y * N + id.x] = gated(gate_up[row + id.x], gate_up[row + N + id.x]);
    }
}
