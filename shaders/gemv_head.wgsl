// logits[row] = embd[row] · x, for the rows of one shard of the embedding, f16 or f32.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;       // [N_ROWS, K]
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [n_vocab]

const ROWS: u32 = WORKGROUP / LANES;
const VECTORS: u32 = select(K / 4u, K / 8u, F16); // vec4u in a row

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = (group.y * groups.x + group.x) * ROWS + lane / LANES;
    var sum = 0.0;
    if row < N_ROWS {
        for (var i = lane % LANES; i < VECTORS; i += LANES) {
            let words = embd[row * VECTORS + i];
            if F16 {
                sum += dot(x[2u * i], vec4f(unpack2x16float(words.x), unpack2x16float(words.y)));
                sum += dot(x[2u * i + 1u], vec4f(unpack2x16float(words.z), unpack2x16float(words.w)));
            } else {
                sum += dot(x[i], bitcast<vec4f>(words));
            }
        }
    }
    let total = lanes_sum_f32(lane, sum);
    if lane % LANES == 0u && row < N_ROWS {
        logits[FIRST_ROW + row] = total;
    }
}
