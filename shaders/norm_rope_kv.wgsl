// Norms, rotates and stores the heads of q, k and v, see rotated_head.wgsl. A workgroup takes one
// head of one token.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_Q + 2 N_KV]
@group(0) @binding(1) var<storage, read> qkv: array<vec4f>;
@group(0) @binding(2) var<storage, read> head_norms: array<f32>;
@group(0) @binding(3) var<storage, read> rope_table: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> q: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>;

const PAIRS_EACH: u32 = (HALF / 2u + WORKGROUP - 1u) / WORKGROUP; // neighbouring pairs, two at a time, of each lane
const QUADS_EACH: u32 = (QUADS + WORKGROUP - 1u) / WORKGROUP; // quads of each lane

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let token = step.row + group.y;
    let head = token * (N_HEAD + 2u * N_HEAD_KV) + group.x;
    for (var n = 0u; n < QUADS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < QUADS {
            head_values[i] = qkv[head * QUADS + i];
        }
    }
    workgroupBarrier();
    let squares = squares_of_head(lane);
    for (var n = 0u; n < PAIRS_EACH; n++) {
        let i = 2u * (n * WORKGROUP + lane);
        if i < HALF {
            store_rotated(group.x, token, i, squares, rotation_of(group.x, token, i));
        }
    }
    finish_head(lane, group.x, token);
}
