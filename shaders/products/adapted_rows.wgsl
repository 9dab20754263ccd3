// Epilogue: as rows.wgsl, with what adapters add to the products: see adapter_delta.wgsl.

@group(0) @binding(EPILOGUE_AT) var<storage, read> b: array<vec4u>;
@group(0) @binding(EPILOGUE_AT + 1u) var<storage, read> u: array<vec4f>;
@group(0) @binding(EPILOGUE_AT + 2u) var<storage, read_write> y: array<f32>; // [ALL_ROWS]

const ROWS: u32 = EACH / MATRICES; // of y, for each team

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
    var added = vec2f();
    if is_mine {
        if ADD {
            before = y[at];
        }
        added.x = delta(0u, at);
        if MATRICES == 2u {
            added.y = delta(0u, ALL_ROWS + at);
        }
    }
    let rows = min(first + each / MATRICES, vec4u(N_ROWS - 1u));
    let v = products(lane, each % MATRICES * N_ROWS + rows);
    if !is_mine {
        return;
    }
    // Explicit, so that no driver fuses the sum with the product before it: adapter_add gives the same bits.
    if MATRICES == 2u {
        y[at] = gated(fma(FACTOR, v.x, added.x), fma(FACTOR, v.y, added.y));
        return;
    }
    let result = fma(FACTOR, select(v.x, v.y, mine == 1u), added.x);
    if ADD {
        y[at] = before + result;
    } else {
        y[at] = result;
    }
}
