// Epilogue: stores the rows as floats.
//
// MATRICES = 1: y[row] = product, or y[row] += product if ADD.
// MATRICES = 2: the rows come in pairs, gate and up, and y[row] = activation(gate) * up.

@group(0) @binding(EPILOGUE_AT) var<storage, read_write> y: array<f32>; // [ALL_ROWS]

const ROWS: u32 = EACH / MATRICES; // of y, for each team

const_assert MATRICES == 1u || EACH == 2u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = ((group.y * groups.x + group.x) * TEAMS + lane / LANES) * ROWS;
    let each = vec4u(0u, 1u, 2u, 3u);
    let mine = lane % LANES; // index among the team's rows
    let row = first + mine;
    let is_mine = mine < ROWS && row < N_ROWS;
    let at = FIRST_ROW + min(row, N_ROWS - 1u);
    // Loaded together with the codes: at the end the lanes would have to wait.
    var before = 0.0;
    if ADD && is_mine {
        before = y[at];
    }
    let rows = min(first + each / MATRICES, vec4u(N_ROWS - 1u));
    let v = products(lane, each % MATRICES * N_ROWS + rows);
    if !is_mine {
        return;
    }
    if MATRICES == 2u {
        y[at] = gated(FACTOR * v.x, FACTOR * v.y);
        return;
    }
    var result = select(v.x, v.y, mine == 1u);
    if EACH > 2u {
        result = v[mine];
    }
    if ADD {
        y[at] = fma(FACTOR, result, before);
    } else {
        y[at] = FACTOR * result;
    }
}
