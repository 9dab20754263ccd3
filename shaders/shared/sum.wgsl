var<workgroup> sums: array<f32, WORKGROUP>;

// The sum of a workgroup's values, for lane 0. Called once, by the whole workgroup.
fn sum_of_all(lane: u32, value: f32) -> f32 {
    sums[lane] = value;
    for (var i = 0u; i < countTrailingZeros(WORKGROUP); i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            sums[lane] += sums[lane + half];
        }
    }
    return sums[0];
}
