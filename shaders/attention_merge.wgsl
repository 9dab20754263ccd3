// Puts the parts of attention together, then q, s = int8 quantisation of the sub-norm over all
// heads: h = o / sqrt(mean(o²) + EPS) * weight. One workgroup per token.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> part: array<vec4f>;          // [n_tokens, n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(2) var<storage, read> part_ml: array<vec2f>;       // [n_tokens, n_splits, N_HEAD]
@group(0) @binding(3) var<storage, read> weight: array<vec4f>;        // [N]
@group(0) @binding(4) var<storage, read_write> q: array<u32>;         // [n_tokens, N] int8, see quantize.wgsl
@group(0) @binding(5) var<storage, read_write> q_scale: array<vec2f>; // [n_tokens]: s, sum of q

const N: u32 = N_HEAD * HEAD_DIM;
const WORDS: u32 = N / 4u;
const STEPS: u32 = (WORDS + WORKGROUP - 1u) / WORKGROUP;

// What each part counts for in its head, the whole being 1; 0 for parts there are not.
var<workgroup> shares: array<f32, N_HEAD * MOST_SPLITS>;

fn share_parts(token: u32, lane: u32) {
    let first = token * step.n_splits;
    for (var head = lane; head < N_HEAD; head += WORKGROUP) {
        var largest = -1e30;
        for (var split = 0u; split < step.n_splits; split++) {
            largest = max(largest, part_ml[(first + split) * N_HEAD + head].x);
        }
        var total = 0.0;
        for (var split = 0u; split < step.n_splits; split++) {
            let ml = part_ml[(first + split) * N_HEAD + head];
            total += exp(ml.x - largest) * ml.y;
        }
        for (var split = 0u; split < MOST_SPLITS; split++) {
            let ml = part_ml[(first + min(split, step.n_splits - 1u)) * N_HEAD + head];
            let share = exp(ml.x - largest) / total;
            shares[head * MOST_SPLITS + split] = select(0.0, share, split < step.n_splits);
        }
    }
    workgroupBarrier();
}

// Values 4i .. 4i + 3 of the heads' outputs. Four parts at a time, so that their loads overlap.
fn merged(token: u32, i: u32) -> vec4f {
    let share = 4u * i / HEAD_DIM * MOST_SPLITS;
    let first = token * step.n_splits;
    let last = first + step.n_splits - 1u;
    var sum = vec4f();
    for (var split = 0u; split < step.n_splits; split += 4u) {
        let p0 = part[min(first + split, last) * WORDS + i];
        let p1 = part[min(first + split + 1u, last) * WORDS + i];
        let p2 = part[min(first + split + 2u, last) * WORDS + i];
        let p3 = part[min(first + split + 3u, last) * WORDS + i];
        sum += shares[share + split] * p0 + shares[share + split + 1u] * p1
            + shares[share + split + 2u] * p2 + shares[share + split + 3u] * p3;
    }
    return sum;
}

// The outputs between the two passes, where workgroup memory holds them: HELD is WORDS or 1.
var<workgroup> outputs: array<vec4f, HELD>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let token = group.x;
    share_parts(token, lane);
    var squares_largest = vec2f();
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * WORKGROUP + lane;
        if i < WORDS {
            let v = merged(token, i);
            if HELD == WORDS {
                outputs[i] = v; // read by this lane again
            }
            let a = abs(v * weight[i]);
            squares_largest.x += dot(v, v);
            squares_largest.y = max(squares_largest.y, max(max(a.x, a.y), max(a.z, a.w)));
        }
    }
    let all = group_sum_max(lane, squares_largest);
    let scale = inverseSqrt(all.x / f32(N) + EPS);
    let s = 127.0 / max(1e-5, all.y * scale);
    var sum = 0;
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * WORKGROUP + lane;
        if i < WORDS {
            var v = vec4f();
            if HELD == WORDS {
                v = outputs[i];
            } else {
                v = merged(token, i);
            }
            let word = quantize(v * scale * weight[i], s);
            q[token * WORDS + quantized_word(i)] = word;
            sum += sum_of_word(word);
        }
    }
    let total = group_sum_i32(lane, sum);
    if lane == 0u {
        q_scale[token] = vec2f(s, f32(total));
    }
}
