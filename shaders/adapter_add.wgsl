// v[t] + b · u[t] for all tokens of the step, or for one with LAST, where v has the results of a product: stored, added or gated
// as shaders/products/rows.wgsl does. With gate and up, v[t] has all values of gate and then those of up.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> b: array<vec4u>;     // see adapter_delta.wgsl
@group(0) @binding(2) var<storage, read> u: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<f32>;       // [n_tokens, MATRICES * ROWS]
@group(0) @binding(4) var<storage, read_write> y: array<f32>; // [n_tokens, ROWS]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x;
    if row >= ROWS {
        return;
    }
    for (var t = 0u; t < TOKENS; t++) {
        let token = id.y * TOKENS + t;
        if token < select(step.n_tokens, 1u, LAST) {
            let at = token * MATRICES * ROWS + row;
            let result = v[at] + delta(token, row);
            let to = token * ROWS + row;
            if MATRICES == 2u {
                y[to] = gated(result, v[at + ROWS] + delta(token, ROWS + row));
            } else if ADD {
                y[to] += result;
            } else {
                y[to] = result;
            }
        }
    }
}
