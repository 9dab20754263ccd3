// approx[row] = embd[row] · x as far as the upper bytes of embd say, for the rows of one shard. Of the
// rows of each workgroup, the one with the largest gives a lead: its value and how far off it may be.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;         // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;            // [K]
@group(0) @binding(2) var<storage, read> error: array<f32>;          // [n_vocab], see split_f16
@group(0) @binding(3) var<storage, read_write> approx: array<f32>;   // [n_vocab]
@group(0) @binding(4) var<storage, read_write> leads: array<vec2f>;  // [n_leads]

const ROWS: u32 = WORKGROUP / LANES; // at once
const VECTORS: u32 = K / 16u;        // of upper bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

fn lane_sum(row: u32, lane: u32) -> f32 {
    var sums = vec4f();
    // A constant number of steps, which drivers can unroll to have all loads under way at once.
    for (var step = 0u; step < STEPS; step++) {
        let i = step * LANES + lane;
        if VECTORS % LANES == 0u || i < VECTORS {
            let words = embd[row * (2u * VECTORS) + i];
            sums += x[4u * i] * approximate(words.x);
            sums += x[4u * i + 1u] * approximate(words.y);
            sums += x[4u * i + 2u] * approximate(words.z);
            sums += x[4u * i + 3u] * approximate(words.w);
        }
    }
    return (sums.x + sums.y) + (sums.z + sums.w);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group.y * groups.x + group.x;
    let first = index * (ROWS * TURNS);
    if first >= N_ROWS {
        return;
    }
    var value = 0.0;
    var id = NONE;
    for (var turn = 0u; turn < TURNS; turn++) {
        let row = first + turn * ROWS + lane / LANES;
        var sum = 0.0;
        if row < N_ROWS {
            sum = lane_sum(row, lane % LANES);
        }
        let total = lanes_sum_f32(lane, sum);
        if lane % LANES == 0u && row < N_ROWS {
            approx[FIRST_ROW + row] = total;
            if id == NONE || total > value {
                value = total;
                id = FIRST_ROW + row;
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        leads[FIRST_LEAD + index] = vec2f(values[0], error[ids[0]]);
    }
}
