// approx[row] = embd[row] · x as far as the upper bytes of embd say, for the rows of one shard. Of the
// rows of each workgroup, the one with the largest gives a lead: its value and how far off it may be.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;         // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;            // [K]
@group(0) @binding(2) var<storage, read> error: array<f32>;          // [n_vocab], see split_f16
@group(0) @binding(3) var<storage, read_write> approx: array<f32>;   // [n_vocab]
@group(0) @binding(4) var<storage, read_write> leads: array<vec2f>;  // [n_leads]

const ROWS: u32 = WORKGROUP / LANES * 4u; // at once, four for each group of LANES lanes
const VECTORS: u32 = K / 16u;             // of upper bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

fn products(words: vec4u, x0: vec4f, x1: vec4f, x2: vec4f, x3: vec4f) -> vec4f {
    return x0 * approximate(words.x) + x1 * approximate(words.y)
        + x2 * approximate(words.z) + x3 * approximate(words.w);
}

fn total(v: vec4f) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// A lane's part of four rows, which share what it reads of x.
fn lane_sums(row: u32, lane: u32) -> vec4f {
    let last = N_ROWS - 1u;
    let rows = 2u * VECTORS * min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(last));
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    // A constant number of steps, which drivers can unroll to have all loads under way at once.
    for (var step = 0u; step < STEPS; step++) {
        let i = step * LANES + lane;
        if VECTORS % LANES == 0u || i < VECTORS {
            let x0 = x[4u * i];
            let x1 = x[4u * i + 1u];
            let x2 = x[4u * i + 2u];
            let x3 = x[4u * i + 3u];
            sum0 += products(embd[rows.x + i], x0, x1, x2, x3);
            sum1 += products(embd[rows.y + i], x0, x1, x2, x3);
            sum2 += products(embd[rows.z + i], x0, x1, x2, x3);
            sum3 += products(embd[rows.w + i], x0, x1, x2, x3);
        }
    }
    return vec4f(total(sum0), total(sum1), total(sum2), total(sum3));
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
        let row = first + turn * ROWS + lane / LANES * 4u;
        let sums = lanes_sum_vec4f(lane, lane_sums(row, lane % LANES));
        if lane % LANES == 0u {
            for (var i = 0u; i < 4u; i++) {
                if row + i < N_ROWS {
                    approx[FIRST_ROW + row + i] = sums[i];
                    if id == NONE || sums[i] > value {
                        value = sums[i];
                        id = FIRST_ROW + row + i;
                    }
                }
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        leads[FIRST_LEAD + index] = vec2f(values[0], error[ids[0]]);
    }
}
