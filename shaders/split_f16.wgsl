// Splits each f16 of one shard of the embedding into two bytes, in place. Also stores a bound for
// the error of a logit that is computed from the upper bytes alone. One workgroup per row.
//
// error[row] = (|d| + G (2 |e| + 2 |d|)) * SLACK, where e is the row, d is the error of its upper
// bytes, and |v| is the Euclidean norm. src/kernels/rescore.rs has the proof.

// [N_ROWS, K] f16, then [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read_write> embd: array<vec2u>;
// [n_vocab]
@group(0) @binding(1) var<storage, read_write> error: array<f32>;

const EIGHTS: u32 = K / 8u; // of values in a row
const VALUES: u32 = (EIGHTS + WORKGROUP - 1u) / WORKGROUP; // eights per lane
const G: f32 = f32(K + 16u) / 16777216.0;

const_assert LANES == WORKGROUP && EACH == 1u;

var<workgroup> held: array<vec4u, EIGHTS>; // the row: upper bytes in xy, lower bytes in zw

fn squares(v: vec2u) -> f32 {
    let values = vec4f(unpack2x16float(v.x), unpack2x16float(v.y));
    return dot(values, values);
}

fn squares_left_out(v: vec2u) -> f32 {
    let values = vec4f(unpack2x16float(v.x), unpack2x16float(v.y)) - approximate(upper_bytes(v));
    return dot(values, values);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.y * groups.x + group.x;
    if row >= N_ROWS {
        return;
    }
    let at = row * (K / 4u);
    var e = 0.0;
    var d = 0.0;
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < EIGHTS {
            let a = embd[at + 2u * i];
            let b = embd[at + 2u * i + 1u];
            held[i] = vec4u(upper_bytes(a), upper_bytes(b), lower_bytes(a), lower_bytes(b));
            e += squares(a) + squares(b);
            d += squares_left_out(a) + squares_left_out(b);
        }
    }
    // Every lane has read its values before another overwrites them.
    storageBarrier();
    workgroupBarrier();
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < EIGHTS {
            embd[at + i] = held[i].xy;
            embd[at + EIGHTS + i] = held[i].zw;
        }
    }
    let norm_e = sqrt(lanes_sum_f32(lane, e));
    let norm_d = sqrt(lanes_sum_f32(lane, d));
    if lane == 0u {
        error[FIRST_ROW + row] = (norm_d + G * (2.0 * norm_e + 2.0 * norm_d)) * SLACK;
    }
}
