// approx[row] = the rank of embd[row] · x, see noise.wgsl, from the upper bytes of embd alone, for the
// rows of one shard. Each workgroup stores a lead: the largest of its values, and the error of that
// row.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;         // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<uniform> step: Step;
@group(0) @binding(3) var<storage, read> shifts: array<u32>;         // [n_vocab], see split_f16
@group(0) @binding(4) var<storage, read> x: array<vec4f>;            // [K]
@group(0) @binding(5) var<storage, read> error: array<f32>;          // [n_vocab], see split_f16
@group(0) @binding(6) var<storage, read_write> approx: array<f32>;   // [n_vocab]
@group(0) @binding(7) var<storage, read_write> leads: array<vec2f>;  // [n_leads]

const ROWS: u32 = SLOTS * EACH; // at a time
const VECTORS: u32 = K / 16u;   // of upper bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

const_assert EACH == 4u; // the components of a vector

fn products(words: vec4u, x0: vec4f, x1: vec4f, x2: vec4f, x3: vec4f) -> vec4f {
    return x0 * approximate(words.x) + x1 * approximate(words.y)
        + x2 * approximate(words.z) + x3 * approximate(words.w);
}

fn total(v: vec4f) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// One lane's part of the sums of four rows. It reads x once for all four.
fn lane_sums(row: u32, lane: u32) -> vec4f {
    let last = N_ROWS - 1u;
    let rows = 2u * VECTORS * min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(last));
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    // Drivers unroll a constant number of steps, so that all loads are in flight together.
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * LANES + lane;
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
    let first = index * (ROWS * REPEATS);
    if first >= N_ROWS {
        return;
    }
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < REPEATS; n++) {
        let row = first + n * ROWS + lane / LANES * EACH;
        let sums = lanes_sum_vec4f(lane, lane_sums(row, lane % LANES));
        for (var i = 0u; i < EACH; i++) {
            // Lanes share the rows: noise takes time.
            if i % LANES == lane % LANES && row + i < N_ROWS {
                let other = FIRST_ROW + row + i;
                let v = rank(sums[i] * f32(1u << shifts[other]), other);
                approx[other] = v;
                if id == NO_TOKEN || v > value {
                    value = v;
                    id = other;
                }
            }
        }
    }
    reduce(lane, value, id);
    if lane == 0u {
        leads[FIRST_GROUP + index] = vec2f(values[0], error[ids[0]]);
    }
}
