// Reads all of `data`. The sums are written so that no compiler can leave out the reading.

@group(0) @binding(0) var<storage, read> data: array<vec4u>;       // [COUNT]
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;   // [workgroups], modulo 2^32

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&total, 0u);
    }
    workgroupBarrier();
    let first = group.x * WORKGROUP * EACH + lane;
    var sum = vec4u();
    for (var i = 0u; i < EACH; i++) {
        let at = first + i * WORKGROUP;
        if at < COUNT {
            sum += data[at];
        }
    }
    atomicAdd(&total, sum.x + sum.y + sum.z + sum.w);
    workgroupBarrier();
    if lane == 0u {
        sums[group.x] = atomicLoad(&total);
    }
}
