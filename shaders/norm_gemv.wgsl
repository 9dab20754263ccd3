// y = W q for one token, where q is the int8 quantisation of x, normed if NORM: see
// normed_rows.wgsl.
//
// MATRICES = 1: y[row] = product, or y[row] += product if ADD.
// MATRICES = 2: the rows come in pairs, gate and up, and y[row] = activation(gate) * up.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;           // [MATRICES, N_ROWS, K] codes
@group(0) @binding(1) var<storage, read> w_scale: array<f32>;       // [MATRICES, ALL_ROWS]
@group(0) @binding(2) var<storage, read> x: array<vec4f>;           // [K]
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // [ALL_ROWS]

fn weight(i: u32) -> vec4f {
    if NORM {
        return norm_weight[i];
    }
    return vec4f(1.0);
}

const ROWS: u32 = EACH / MATRICES; // of y, for each slot

fn input(token: u32, i: u32) -> Input {
    return Input(x[i], x[i + 8u], x[i + 16u], x[i + 24u]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = (group.x * SLOTS + lane / LANES) * ROWS;
    let each = vec2u(0u, 1u);
    let mine = lane % LANES; // index among the slot's rows
    let row = first + mine;
    let is_mine = mine < ROWS && row < N_ROWS;
    let at = FIRST_ROW + min(row, N_ROWS - 1u);
    // Loaded together with the codes: at the end the lanes would have to wait.
    let scale = w_scale[at];
    var up_scale = 0.0;
    if MATRICES == 2u {
        up_scale = w_scale[ALL_ROWS + at];
    }
    var before = 0.0;
    if ADD && is_mine {
        before = y[at];
    }
    let p = products(
        lane,
        each % MATRICES * N_ROWS + min(first + each / MATRICES, vec2u(N_ROWS - 1u)),
    );
    if is_mine {
        if MATRICES == 2u {
            let gate = product(p.d.x, p.q_scale, scale);
            y[at] = gated(gate, product(p.d.y, p.q_scale, up_scale));
        } else {
            y[at] = before + product(select(p.d.x, p.d.y, mine == 1u), p.q_scale, scale);
        }
    }
}
