// logits[token] = embd x[token] for up to eight tokens, for the rows of one shard of the embedding: each
// row is read once for all of them. The same logits, to the bit, as gemv_head's or gemv_head_split's.

@group(0) @binding(0) var<storage, read> embd: array<vec2u>;       // [N_ROWS, K] f16 or f32, or [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [8, K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [8, N_VOCAB]

const VECTORS: u32 = select(K / 4u, K / 8u, F16 || SPLIT); // of 16 bytes, in a row

fn words(row: u32, i: u32) -> vec4u {
    let at = row * 2u * VECTORS;
    if SPLIT {
        let upper = embd[at + i];
        let lower = embd[at + VECTORS + i];
        return vec4u(joined(upper.x, lower.x), joined(upper.y, lower.y));
    }
    return vec4u(embd[at + 2u * i], embd[at + 2u * i + 1u]);
}

fn add_words(sum: f32, token: u32, i: u32, words: vec4u) -> f32 {
    if F16 || SPLIT {
        return add_eight(sum, token * VECTORS + i, words);
    }
    return add_products(sum, x[token * VECTORS + i], bitcast<vec4f>(words));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = (group.y * groups.x + group.x) * (WORKGROUP / LANES) + lane / LANES;
    var low = vec4f();  // tokens 0 to 3
    var high = vec4f(); // tokens 4 to 7
    if row < N_ROWS {
        for (var i = lane % LANES; i < VECTORS; i += LANES) {
            let eight = words(row, i);
            low.x = add_words(low.x, 0u, i, eight);
            low.y = add_words(low.y, 1u, i, eight);
            low.z = add_words(low.z, 2u, i, eight);
            low.w = add_words(low.w, 3u, i, eight);
            high.x = add_words(high.x, 4u, i, eight);
            high.y = add_words(high.y, 5u, i, eight);
            high.z = add_words(high.z, 6u, i, eight);
            high.w = add_words(high.w, 7u, i, eight);
        }
    }
    let first = lanes_sum_vec4f(lane, low);
    workgroupBarrier(); // what the sums are made in is used again
    let second = lanes_sum_vec4f(lane, high);
    if lane % LANES == 0u && row < N_ROWS {
        for (var i = 0u; i < 4u; i++) {
            logits[i * N_VOCAB + FIRST_ROW + row] = first[i];
            logits[(4u + i) * N_VOCAB + FIRST_ROW + row] = second[i];
        }
    }
}
