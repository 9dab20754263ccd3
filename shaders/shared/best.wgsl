// The best of a workgroup's tokens: the one with the greatest value, and of equal ones the one with
// the lowest id. If there is no token, the id is NO_TOKEN.

var<workgroup> values: array<f32, WORKGROUP>;
var<workgroup> ids: array<u32, WORKGROUP>;

// Leaves the best in values[0] and ids[0]. Called by the whole workgroup. Between two calls, all
// lanes must wait until the result was read.
fn reduce(lane: u32, value: f32, id: u32) {
    values[lane] = value;
    ids[lane] = id;
    for (var i = 0u; i < countTrailingZeros(WORKGROUP); i++) {
        let half = WORKGROUP >> (i + 1u);
        workgroupBarrier();
        if lane < half {
            let other = values[lane + half];
            let other_id = ids[lane + half];
            let better = other > values[lane] || (other == values[lane] && other_id < ids[lane]);
            if other_id != NO_TOKEN && (better || ids[lane] == NO_TOKEN) {
                values[lane] = other;
                ids[lane] = other_id;
            }
        }
    }
}

