// y += W q for one token, q being the int8 quantisation of the normed outputs of attention, which every
// workgroup puts together from their parts for itself: see normed_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;           // [N_ROWS, K] codes
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;       // [ALL_ROWS]
@group(0) @binding(3) var<storage, read> part: array<vec4f>;        // [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(4) var<storage, read> part_ml: array<vec2f>;     // [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;       // [ALL_ROWS]

// What each part counts for in its head, the whole being 1; 0 for parts there are not.
var<workgroup> shares: array<f32, N_HEAD * MOST_SPLITS>;

fn share_parts(lane: u32) {
    let last = step.n_splits - 1u;
    for (var head = lane; head < N_HEAD; head += WORKGROUP) {
        var ml: array<vec2f, MOST_SPLITS>;
        var largest = -1e30;
        for (var split = 0u; split < MOST_SPLITS; split++) {
            ml[split] = part_ml[min(split, last) * N_HEAD + head];
            largest = max(largest, ml[split].x);
        }
        var total = 0.0;
        for (var split = 0u; split < MOST_SPLITS; split++) {
            let share = select(0.0, exp(ml[split].x - largest), split <= last);
            total += share * ml[split].y;
            shares[head * MOST_SPLITS + split] = share;
        }
        for (var split = 0u; split < MOST_SPLITS; split++) {
            shares[head * MOST_SPLITS + split] /= total;
        }
    }
    workgroupBarrier();
}

// Four parts at a time, so that their loads overlap.
fn input(i: u32) -> vec4f {
    let share = 4u * i / HEAD_DIM * MOST_SPLITS;
    let last = step.n_splits - 1u;
    var sum = vec4f();
    for (var split = 0u; split < step.n_splits; split += 4u) {
        let p0 = part[split * (K / 4u) + i];
        let p1 = part[min(split + 1u, last) * (K / 4u) + i];
        let p2 = part[min(split + 2u, last) * (K / 4u) + i];
        let p3 = part[min(split + 3u, last) * (K / 4u) + i];
        sum += shares[share + split] * p0 + shares[share + split + 1u] * p1
            + shares[share + split + 2u] * p2 + shares[share + split + 3u] * p3;
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    share_parts(lane);
    let first = (group.x * SLOTS + lane / LANES) * EACH;
    var rows: vec4u;
    for (var each = 0u; each < EACH; each++) {
        rows[each] = min(first + each, N_ROWS - 1u);
    }
    let p = products(lane, rows);
    let mine = lane % LANES; // of the slot's rows
    if mine < EACH && first + mine < N_ROWS {
        let at = FIRST_ROW + first + mine;
        y[at] += product(p.d[mine], p.q_scale, w_scale[at]);
    }
}
