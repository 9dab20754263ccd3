// Epilogue: queries, keys and values as whole heads, which are normed, rotated and stored: see
// rotated_head.wgsl. A workgroup takes one head.

@group(0) @binding(EPILOGUE_AT) var<storage, read> head_norms: array<f32>;
@group(0) @binding(EPILOGUE_AT + 1u) var<storage, read> rope_table: array<vec2f>;
@group(0) @binding(EPILOGUE_AT + 2u) var<storage, read_write> q: array<f32>; // [N_Q]
@group(0) @binding(EPILOGUE_AT + 3u) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(EPILOGUE_AT + 4u) var<storage, read_write> v_cache: array<u32>;

const_assert TEAMS * EACH == HEAD_DIM && EACH == 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let team = lane / LANES;
    let first = group.x * HEAD_DIM + team * EACH;
    let head = FIRST_ROW / HEAD_DIM + group.x;
    // Loaded together with the codes: at the end the lanes would have to wait.
    let rotation = rotation_of(head, 0u, min(2u * lane, HALF - 2u));
    let v = products(lane, first + vec4u(0u, 1u, 2u, 3u));
    if lane % LANES == 0u {
        head_values[team] = FACTOR * v;
    }
    workgroupBarrier();
    let squares = squares_of_head(lane);
    if lane < HALF / 2u {
        store_rotated(head, 0u, 2u * lane, squares, rotation);
    }
    finish_head(lane, head, 0u);
}
