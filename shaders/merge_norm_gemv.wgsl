// y += W q for one token, q being the int8 quantisation of the normed outputs of attention, which every
// workgroup puts together from their parts for itself: see normed_rows.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> w: array<vec4u>;           // [N_ROWS, K] codes
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;       // [ALL_ROWS]
@group(0) @binding(3) var<storage, read> part: array<vec4f>;        // [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(4) var<storage, read> part_ml: array<vec2f>;     // [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4f>; // [K]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;       // [ALL_ROWS]

// What the four parts from `split` on count for in a head, whose largest score was `before` so far.
struct Shares {
    largest: f32,
    shrink: f32, // of what was summed before
    share: vec4f,
    total: f32,
}

fn share_parts(split: u32, head: u32, before: f32) -> Shares {
    let last = step.n_splits - 1u;
    let ml0 = part_ml[split * N_HEAD + head];
    let ml1 = part_ml[min(split + 1u, last) * N_HEAD + head];
    let ml2 = part_ml[min(split + 2u, last) * N_HEAD + head];
    let ml3 = part_ml[min(split + 3u, last) * N_HEAD + head];
    let m = vec4f(ml0.x, ml1.x, ml2.x, ml3.x);
    let largest = max(before, max(max(m.x, m.y), max(m.z, m.w)));
    let share = select(vec4f(), exp(m - largest), vec4u(split) + vec4u(0u, 1u, 2u, 3u) <= vec4u(last));
    return Shares(largest, exp(before - largest), share, dot(share, vec4f(ml0.y, ml1.y, ml2.y, ml3.y)));
}

fn input_of(i: u32) -> vec4f {
    let head = 4u * i / HEAD_DIM;
    let last = step.n_splits - 1u;
    var largest = -1e30;
    var total = 0.0;
    var sum = vec4f();
    for (var split = 0u; split < step.n_splits; split += 4u) {
        let p0 = part[split * (K / 4u) + i];
        let p1 = part[min(split + 1u, last) * (K / 4u) + i];
        let p2 = part[min(split + 2u, last) * (K / 4u) + i];
        let p3 = part[min(split + 3u, last) * (K / 4u) + i];
        let s = share_parts(split, head, largest);
        largest = s.largest;
        total = total * s.shrink + s.total;
        sum = sum * s.shrink + s.share.x * p0 + s.share.y * p1 + s.share.z * p2 + s.share.w * p3;
    }
    return sum / total;
}

// Four parts at a time, so that their loads overlap.
fn input(i: u32) -> Input {
    if HEAD_DIM % 128u != 0u {
        return Input(input_of(i), input_of(i + 8u), input_of(i + 16u), input_of(i + 24u));
    }
    let head = 4u * i / HEAD_DIM;
    let last = step.n_splits - 1u;
    var largest = -1e30;
    var total = 0.0;
    var sum = Input();
    for (var split = 0u; split < step.n_splits; split += 4u) {
        let i0 = split * (K / 4u) + i;
        let i1 = min(split + 1u, last) * (K / 4u) + i;
        let i2 = min(split + 2u, last) * (K / 4u) + i;
        let i3 = min(split + 3u, last) * (K / 4u) + i;
        let a0 = part[i0]; let b0 = part[i0 + 8u]; let c0 = part[i0 + 16u]; let d0 = part[i0 + 24u];
        let a1 = part[i1]; let b1 = part[i1 + 8u]; let c1 = part[i1 + 16u]; let d1 = part[i1 + 24u];
        let a2 = part[i2]; let b2 = part[i2 + 8u]; let c2 = part[i2 + 16u]; let d2 = part[i2 + 24u];
        let a3 = part[i3]; let b3 = part[i3 + 8u]; let c3 = part[i3 + 16u]; let d3 = part[i3 + 24u];
        let s = share_parts(split, head, largest);
        largest = s.largest;
        total = total * s.shrink + s.total;
        sum.a = sum.a * s.shrink + s.share.x * a0 + s.share.y * a1 + s.share.z * a2 + s.share.w * a3;
        sum.b = sum.b * s.shrink + s.share.x * b0 + s.share.y * b1 + s.share.z * b2 + s.share.w * b3;
        sum.c = sum.c * s.shrink + s.share.x * c0 + s.share.y * c1 + s.share.z * c2 + s.share.w * c3;
        sum.d = sum.d * s.shrink + s.share.x * d0 + s.share.y * d1 + s.share.z * d2 + s.share.w * d3;
    }
    return Input(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = (group.x * SLOTS + lane / LANES) * EACH;
    let p = products(lane, min(first + vec4u(0u, 1u, 2u, 3u), vec4u(N_ROWS - 1u)));
    let mine = lane % LANES; // of the slot's rows
    if mine < EACH && first + mine < N_ROWS {
        let at = FIRST_ROW + first + mine;
        y[at] += product(p.d[mine], p.q_scale, w_scale[at]);
    }
}
