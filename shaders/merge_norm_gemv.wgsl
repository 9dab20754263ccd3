// y += W q for one token, where q is the int8 quantisation of the normed outputs of attention.
// Every workgroup merges the splits, norms and quantises for itself: see merged_input.wgsl and
// normed_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
// [N_ROWS, K] codes
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
// [ALL_ROWS]
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;
// [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(3) var<storage, read> partial_sums: array<vec4f>;
// [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(4) var<storage, read> partial_max_total: array<vec2f>;
// [K]
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4f>;
// [ALL_ROWS]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn weight(i: u32) -> vec4f {
    if NORM {
        return norm_weight[i];
    }
    return vec4f(1.0);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = (group.x * SLOTS + lane / LANES) * EACH;
    let mine = lane % LANES; // index among the slot's rows
    let row = first + mine;
    let is_mine = mine < EACH && row < N_ROWS;
    let at = FIRST_ROW + min(row, N_ROWS - 1u);
    // Loaded together with the codes: at the end the lanes would have to wait.
    let scale = w_scale[at];
    var before = 0.0;
    if is_mine {
        before = y[at];
    }
    let p = products(lane, min(first + vec2u(0u, 1u), vec2u(N_ROWS - 1u)));
    if is_mine {
        y[at] = before + product(select(p.d.x, p.d.y, mine == 1u), p.q_scale, scale);
    }
}
