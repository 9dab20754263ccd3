// logits[row] = embd[row] · x, for the rows of one shard of the embedding, f16 or f32.

@group(0) @binding(0) var<storage, read> embd: array<vec4u>;       // [N_ROWS, K]
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [n_vocab]

const VECTORS: u32 = select(K / 4u, K / 8u, F16); // vec4u in a row

fn lane_sum(row: u32, lane: u32) -> f32 {
    var sum = 0.0;
    for (var at_step = 0u; at_step < (VECTORS + LANES - 1u) / LANES; at_step++) {
        let i = at_step * LANES + lane;
        if VECTORS % LANES == 0u || i < VECTORS {
            let words = embd[row * VECTORS + i];
            if F16 {
                sum = add_eight(sum, i, words);
            } else {
                sum = add_products(sum, x[i], bitcast<vec4f>(words));
            }
        }
    }
    return sum;
}

