// logits[row] = embd[row] · x, for the rows of one shard of the embedding, f16 or f32.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;       // [N_ROWS, K]
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [n_vocab]

const ROWS: u32 = WORKGROUP / LANES;
const VECTORS: u32 = select(K / 4u, K / 8u, F16); // vec4u in a row

// What vector `i` of a row adds, and its row's end: past it there is nothing to add.
fn dot_vector(i: u32, words: vec4u) -> f32 {
    let at = min(i, VECTORS - 1u);
    var sum = 0.0;
    if F16 {
        sum = dot(x[2u * at], vec4f(unpack2x16float(words.x), unpack2x16float(words.y)))
            + dot(x[2u * at + 1u], vec4f(unpack2x16float(words.z), unpack2x16float(words.w)));
    } else {
        sum = dot(x[at], bitcast<vec4f>(words));
    }
    return select(0.0, sum, i < VECTORS);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = (group.y * groups.x + group.x) * ROWS + lane / LANES;
    var sum = 0.0;
    if row < N_ROWS {
        let first = row * VECTORS;
        let last = VECTORS - 1u;
        // Five loads at once, see gemv_i2s.wgsl; five, because a row of 2560 takes 32 lanes ten.
        for (var i = lane % LANES; i < VECTORS; i += 5u * LANES) {
            let w0 = embd[first + i];
            let w1 = embd[first + min(i + LANES, last)];
            let w2 = embd[first + min(i + 2u * LANES, last)];
            let w3 = embd[first + min(i + 3u * LANES, last)];
            let w4 = embd[first + min(i + 4u * LANES, last)];
            sum += dot_vector(i, w0) + dot_vector(i + LANES, w1) + dot_vector(i + 2u * LANES, w2)
                + dot_vector(i + 3u * LANES, w3) + dot_vector(i + 4u * LANES, w4);
        }
    }
    let total = lanes_sum_f32(lane, sum);
    if lane % LANES == 0u && row < N_ROWS {
        logits[FIRST_ROW + row] = total;
    }
}
