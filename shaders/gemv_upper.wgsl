// approx[row] = embd[row] · x as far as the upper bytes of embd say, for the rows of one shard. Of the
// rows of each workgroup, the one with the largest gives a lead: its value and how far off it may be.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;         // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;            // [K]
@group(0) @binding(2) var<storage, read> error: array<f32>;          // [n_vocab], see split_f16
@group(0) @binding(3) var<storage, read_write> approx: array<f32>;   // [n_vocab]
@group(0) @binding(4) var<storage, read_write> leads: array<vec2f>;  // [n_leads]

const ROWS: u32 = 2u * WORKGROUP / LANES; // at once, two for each LANES lanes
const VECTORS: u32 = K / 16u;             // of upper bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

fn products(a: vec4f, b: vec4f, c: vec4f, d: vec4f, words: vec4u) -> vec4f {
    return a * approximate(words.x) + b * approximate(words.y) + c * approximate(words.z) + d * approximate(words.w);
}

fn total_of(v: vec4f) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// What a lane adds up of two rows. Two, because x comes from the cache no faster than the rows from
// memory: four bytes of it meet a byte of each row.
fn lane_sums(rows: vec2u, lane: u32) -> vec2f {
    var first = vec4f();
    var second = vec4f();
    // A constant number of steps, which drivers can unroll to have all loads under way at once.
    for (var step = 0u; step < STEPS; step++) {
        let i = step * LANES + lane;
        if VECTORS % LANES == 0u || i < VECTORS {
            let a = x[4u * i];
            let b = x[4u * i + 1u];
            let c = x[4u * i + 2u];
            let d = x[4u * i + 3u];
            first += products(a, b, c, d, embd[rows.x * (2u * VECTORS) + i]);
            second += products(a, b, c, d, embd[rows.y * (2u * VECTORS) + i]);
        }
    }
    return vec2f(total_of(first), total_of(second));
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
        let row = first + turn * ROWS + lane / LANES * 2u;
        var sums = vec2f();
        if row < N_ROWS {
            sums = lane_sums(vec2u(row, min(row + 1u, N_ROWS - 1u)), lane % LANES);
        }
        let totals = vec2f(lanes_sum_f32(lane, sums.x), lanes_sum_f32(lane, sums.y));
        if lane % LANES == 0u {
            for (var i = 0u; i < 2u && row + i < N_ROWS; i++) {
                let total = select(totals.x, totals.y, i == 1u);
                approx[FIRST_ROW + row + i] = total;
                if id == NONE || total > value {
                    value = total;
                    id = FIRST_ROW + row + i;
                }
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        leads[FIRST_LEAD + index] = vec2f(values[0], error[ids[0]]);
    }
}
