// Computes the logit of each row of a shard. LANES lanes share a row. The kernel declares lane_sum.

const_assert EACH == 1u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = (group.y * groups.x + group.x) * TEAMS + lane / LANES;
    var sum = 0.0;
    if row < N_ROWS {
        sum = lane_sum(row, lane % LANES);
    }
    let total = lanes_sum_f32(lane, sum);
    if lane % LANES == 0u && row < N_ROWS {
        logits[FIRST_ROW + row] = total;
    }
}
