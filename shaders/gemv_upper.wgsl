// approx[row] = embd[row] · x, from the upper bytes of embd alone. If RANKED, approx is the rank of
// that value, see noise.wgsl. The rows are those of up to three shards, see shards.wgsl. Each
// workgroup stores a lead: the largest of its values, and the error of that row.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;         // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<uniform> sampling: Sampling;
@group(0) @binding(2) var<uniform> step: Step;
@group(0) @binding(3) var<storage, read> shifts: array<u32>;         // [n_vocab], see split_f16
@group(0) @binding(4) var<storage, read> x: array<vec4f>;            // [K]
@group(0) @binding(5) var<storage, read> error: array<f32>;          // [n_vocab], see split_f16
@group(0) @binding(6) var<storage, read_write> approx: array<f32>;   // [n_vocab]
@group(0) @binding(7) var<storage, read_write> leads: array<vec2f>;  // [n_leads]
@group(0) @binding(8) var<storage, read> embd_1: array<vec4u>;       // the second shard
@group(0) @binding(9) var<storage, read> embd_2: array<vec4u>;       // the third shard

const ROWS: u32 = TEAMS * EACH; // rows that are computed at a time
const VECTORS: u32 = K / 16u;   // vectors of upper bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

const_assert EACH == 4u; // EACH rows are the components of a vector

fn products(words: vec4u, x0: vec4f, x1: vec4f, x2: vec4f, x3: vec4f) -> vec4f {
    return x0 * approximate(words.x) + x1 * approximate(words.y)
        + x2 * approximate(words.z) + x3 * approximate(words.w);
}

fn total(v: vec4f) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

struct FourRows {
    a: vec4u,
    b: vec4u,
    c: vec4u,
    d: vec4u,
}

// One vector of upper bytes of each of four rows of a shard.
fn upper(shard: u32, at: vec4u) -> FourRows {
    if SHARD_1 < N_ROWS && shard == 1u {
        return FourRows(embd_1[at.x], embd_1[at.y], embd_1[at.z], embd_1[at.w]);
    }
    if SHARD_2 < N_ROWS && shard == 2u {
        return FourRows(embd_2[at.x], embd_2[at.y], embd_2[at.z], embd_2[at.w]);
    }
    return FourRows(embd[at.x], embd[at.y], embd[at.z], embd[at.w]);
}

// One lane's part of the sums of the rows `row` to `row` + 3. The lane reads x once for all four
// rows.
fn lane_sums(mine: Rows, row: u32, lane: u32) -> vec4f {
    let each = min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(mine.end - 1u));
    let rows = 2u * VECTORS * (each - vec4u(mine.start));
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
            let words = upper(mine.shard, rows + vec4u(i));
            sum0 += products(words.a, x0, x1, x2, x3);
            sum1 += products(words.b, x0, x1, x2, x3);
            sum2 += products(words.c, x0, x1, x2, x3);
            sum3 += products(words.d, x0, x1, x2, x3);
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
    let mine = rows_of_group(index, ROWS * REPEATS);
    if mine.first >= mine.end {
        return;
    }
    var value = 0.0;
    var id = NO_TOKEN;
    for (var n = 0u; n < REPEATS; n++) {
        let row = mine.first + n * ROWS + lane / LANES * EACH;
        let sums = lanes_sum_vec4f(lane, lane_sums(mine, row, lane % LANES));
        for (var i = 0u; i < EACH; i++) {
            // Lanes share the rows, because computing noise takes time.
            if i % LANES == lane % LANES && row + i < mine.end {
                let other = FIRST_ROW + row + i;
                var v = sums[i] * f32(1u << shifts[other]);
                if RANKED {
                    v = rank(v, other);
                }
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
