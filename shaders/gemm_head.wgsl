// logits[token] = embd x[token] for up to eight tokens, for the rows of one shard of the embedding: each
// row is read once for all of them, and what LANES lanes read of the tokens serves ROWS rows, 1 or 4. The
// same logits, to the bit, as gemv_head's or gemv_head_split's.

@group(0) @binding(0) var<storage, read> embd: array<vec2u>;       // [N_ROWS, K] f16 or f32, or [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [8, K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [8, N_VOCAB]

const VECTORS: u32 = select(K / 4u, K / 8u, F16 || SPLIT); // of 16 bytes, in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

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

// Of one row, by token.
struct Sums {
    low: vec4f,  // tokens 0 to 3
    high: vec4f, // tokens 4 to 7
}

fn add_row(sums: Sums, row: u32, i: u32) -> Sums {
    let words = words(row, i);
    return Sums(
        vec4f(
            add_words(sums.low.x, 0u, i, words),
            add_words(sums.low.y, 1u, i, words),
            add_words(sums.low.z, 2u, i, words),
            add_words(sums.low.w, 3u, i, words),
        ),
        vec4f(
            add_words(sums.high.x, 4u, i, words),
            add_words(sums.high.y, 5u, i, words),
            add_words(sums.high.z, 6u, i, words),
            add_words(sums.high.w, 7u, i, words),
        ),
    );
}

fn finish(row: u32, lane: u32, sums: Sums) {
    let low = lanes_sum_vec4f(lane, sums.low);
    let high = lanes_sum_vec4f(lane, sums.high);
    if lane % LANES == 0u && row < N_ROWS {
        for (var i = 0u; i < 4u; i++) {
            logits[i * N_VOCAB + FIRST_ROW + row] = low[i];
            logits[(4u + i) * N_VOCAB + FIRST_ROW + row] = high[i];
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = ((group.y * groups.x + group.x) * (WORKGROUP / LANES) + lane / LANES) * ROWS;
    // Rows past the last are made as that, and not stored.
    let rows = min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(N_ROWS - 1u));
    var sums0 = Sums();
    var sums1 = Sums();
    var sums2 = Sums();
    var sums3 = Sums();
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * LANES + lane % LANES;
        if VECTORS % LANES == 0u || i < VECTORS {
            sums0 = add_row(sums0, rows.x, i);
            if ROWS > 1u {
                sums1 = add_row(sums1, rows.y, i);
                sums2 = add_row(sums2, rows.z, i);
                sums3 = add_row(sums3, rows.w, i);
            }
        }
    }
    finish(row, lane, sums0);
    if ROWS > 1u {
        finish(row + 1u, lane, sums1);
        finish(row + 2u, lane, sums2);
        finish(row + 3u, lane, sums3);
    }
}
