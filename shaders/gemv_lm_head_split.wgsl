// logits[row] = embd[row] · x, for the rows of one shard of an embedding of f16 split into bytes.
// The logits equal those that gemv_lm_head computes from the f16, to the bit.

@group(0) @binding(0) var<storage, read> embd: array<vec2u>;       // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> shifts: array<u32>;       // [n_vocab], see split_f16
@group(0) @binding(2) var<storage, read> x: array<vec4f>;          // [K]
@group(0) @binding(3) var<storage, read_write> logits: array<f32>; // [n_vocab]

fn eight_bytes(i: u32) -> vec2u {
    return embd[i];
}

fn lane_sum(row: u32, lane: u32) -> f32 {
    return split_sum(row, FIRST_ROW + row, lane);
}
