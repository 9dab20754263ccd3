// y[t][row] += b[row] · u[t], for every token t. The rows belong to up to three matrices, and u has RANK
// values for each matrix.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> b: array<vec4u>;     // [ROWS, RANK] f16
@group(0) @binding(2) var<storage, read> u: array<vec4f>;     // [n_tokens, MATRICES, RANK]
@group(0) @binding(3) var<storage, read_write> y: array<f32>; // [n_tokens, ROWS]

const EIGHTS: u32 = RANK / 8u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x;
    let token = id.y;
    if row < ROWS && token < step.n_tokens {
        let matrix = select(0u, 1u, row >= SECOND) + select(0u, 1u, row >= THIRD);
        let first = (token * MATRICES + matrix) * 2u * EIGHTS;
        var sum = 0.0;
        for (var i = 0u; i < EIGHTS; i++) {
            let words = b[row * EIGHTS + i];
            let low = vec4f(unpack2x16float(words.x), unpack2x16float(words.y));
            let high = vec4f(unpack2x16float(words.z), unpack2x16float(words.w));
            sum += dot(low, u[first + 2u * i]) + dot(high, u[first + 2u * i + 1u]);
        }
        y[token * ROWS + row] += sum;
    }
}
