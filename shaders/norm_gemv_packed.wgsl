// y = W q for one token, where q is the int8 quantisation of the normed residual stream. See
// packed_slots.wgsl and stream_input.wgsl.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;
@group(0) @binding(1) var<storage, read> w_scale: array<u32>;
@group(0) @binding(2) var<storage, read> stream: array<vec4u>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>; // [ALL_ROWS]

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = ((group.y * groups.x + group.x) * SLOTS + lane / LANES) * EACH;
    let v = products(lane, min(first + vec4u(0u, 1u, 2u, 3u), vec4u(N_ROWS - 1u)));
    let row = first + lane % LANES;
    if lane % LANES < EACH && row < N_ROWS {
        y[FIRST_ROW + row] = FACTOR * v[lane % LANES];
    }
}
