// The queries, keys and values of one token from its residual stream: the products with whole heads,
// which are normed, rotated and stored. See packed_slots.wgsl, stream_input.wgsl and
// rotated_head.wgsl. A workgroup takes one head.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;
@group(0) @binding(2) var<storage, read> w_scale: array<u32>;
@group(0) @binding(3) var<storage, read> stream: array<vec4u>;
@group(0) @binding(4) var<storage, read> head_norms: array<f32>;
@group(0) @binding(5) var<storage, read> rope_table: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> q: array<f32>;
@group(0) @binding(7) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(8) var<storage, read_write> v_cache: array<u32>;

const_assert SLOTS * EACH == HEAD_DIM && EACH == 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let slot = lane / LANES;
    let first = group.x * HEAD_DIM + slot * EACH;
    let head = FIRST_ROW / HEAD_DIM + group.x;
    // Loaded together with the codes: at the end the lanes would have to wait.
    let rotation = rotation_of(head, 0u, min(2u * lane, HALF - 2u));
    let v = products(lane, first + vec4u(0u, 1u, 2u, 3u));
    if lane % LANES == 0u {
        head_values[slot] = FACTOR * v;
    }
    workgroupBarrier();
    let squares = squares_of_head(lane);
    if lane < HALF / 2u {
        store_rotated(head, 0u, 2u * lane, squares, rotation);
    }
    finish_head(lane, head, 0u);
}
