// Splits each f16 of one shard of the embedding into two bytes, in place. Also stores each row's
// shift, and a bound for the error of a logit that is computed from the upper bytes alone. There is
// one workgroup per row.
//
// error[row] = (|d| + G (2 |e| + 2 |d|)) * SLACK, where e is the row, d is the error of its upper
// bytes, and |v| is the Euclidean norm. src/kernels/rescore.rs has the proof.

// [N_ROWS, K] f16, then [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read_write> embd: array<vec2u>;
// [n_vocab]
@group(0) @binding(1) var<storage, read_write> shifts: array<u32>;
// [n_vocab]
@group(0) @binding(2) var<storage, read_write> error: array<f32>;

const EIGHTS: u32 = K / 8u; // vectors of eight values in a row
const VALUES: u32 = (EIGHTS + WORKGROUP - 1u) / WORKGROUP; // vectors of each lane
const G: f32 = f32(K + 16u) / 16777216.0;

const_assert LANES == WORKGROUP && EACH == 1u;

var<workgroup> held: array<vec4u, EIGHTS>; // the row
var<workgroup> greatest_exponent: atomic<u32>;

fn floats(halves: vec2u) -> vec4f {
    return vec4f(unpack2x16float(halves.x), unpack2x16float(halves.y));
}

fn greatest_of(halves: vec4u) -> u32 {
    let exponents =
        max((halves >> vec4u(10u)) & vec4u(31u), (halves >> vec4u(26u)) & vec4u(31u));
    return max(max(exponents.x, exponents.y), max(exponents.z, exponents.w));
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
    if lane == 0u {
        atomicStore(&greatest_exponent, 15u);
    }
    workgroupBarrier();
    let at = row * (K / 4u);
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < EIGHTS {
            held[i] = vec4u(embd[at + 2u * i], embd[at + 2u * i + 1u]);
            atomicMax(&greatest_exponent, greatest_of(held[i]));
        }
    }
    // Every lane has read its values before another overwrites them.
    storageBarrier();
    workgroupBarrier();
    let shift = atomicLoad(&greatest_exponent) - 15u;
    let scale = f32(1u << shift);
    var e = 0.0;
    var d = 0.0;
    for (var n = 0u; n < VALUES; n++) {
        let i = n * WORKGROUP + lane;
        if i < EIGHTS {
            let a = moved(held[i].xy, shift);
            let b = moved(held[i].zw, shift);
            let upper = vec2u(upper_bytes(a), upper_bytes(b));
            embd[at + i] = upper;
            embd[at + EIGHTS + i] = vec2u(lower_bytes(a), lower_bytes(b));
            let first = floats(held[i].xy);
            let second = floats(held[i].zw);
            e += dot(first, first) + dot(second, second);
            let first_off = first - scale * approximate(upper.x);
            let second_off = second - scale * approximate(upper.y);
            d += dot(first_off, first_off) + dot(second_off, second_off);
        }
    }
    let norm_e = sqrt(lanes_sum_f32(lane, e));
    let norm_d = sqrt(lanes_sum_f32(lane, d));
    if lane == 0u {
        shifts[FIRST_ROW + row] = shift;
        error[FIRST_ROW + row] = (norm_d + G * (2.0 * norm_e + 2.0 * norm_d)) * SLACK;
    }
}
