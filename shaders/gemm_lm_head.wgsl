// logits[token] = embd x[token] for up to FEW tokens, for the rows of one shard of the embedding.
// Each row is read once for all tokens, and LANES lanes read the tokens once for EACH rows. The
// logits equal those of gemv_lm_head and gemv_lm_head_split to the bit.

// [N_ROWS, K] f16 or f32, or [N_ROWS, 2, K] bytes
@group(0) @binding(0) var<storage, read> embd: array<vec2u>;
// [ALL_ROWS], used with split f16
@group(0) @binding(1) var<storage, read> shifts: array<u32>;
// [FEW, K]
@group(0) @binding(2) var<storage, read> x: array<vec4f>;
// [FEW, ALL_ROWS]
@group(0) @binding(3) var<storage, read_write> logits: array<f32>;

const VECTORS: u32 = select(K / 4u, K / 8u, F16 || SPLIT); // vectors of 16 bytes in a row
const STEPS: u32 = (VECTORS + LANES - 1u) / LANES;

const_assert FEW == 8u;               // one for each component of low and high
const_assert EACH == 1u || EACH == 4u; // one for each of sums0 to sums3

fn words(row: u32, i: u32) -> vec4u {
    let at = row * 2u * VECTORS;
    if SPLIT {
        let upper = embd[at + i];
        let lower = embd[at + VECTORS + i];
        let shift = shifts[FIRST_ROW + row];
        return vec4u(joined(upper.x, lower.x, shift), joined(upper.y, lower.y, shift));
    }
    return vec4u(embd[at + 2u * i], embd[at + 2u * i + 1u]);
}

fn add_words(sum: f32, token: u32, i: u32, words: vec4u) -> f32 {
    if F16 || SPLIT {
        return add_eight(sum, token * VECTORS + i, words);
    }
    return add_products(sum, x[token * VECTORS + i], bitcast<vec4f>(words));
}

// The sums of one row, by token.
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
            logits[i * ALL_ROWS + FIRST_ROW + row] = low[i];
            logits[(4u + i) * ALL_ROWS + FIRST_ROW + row] = high[i];
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = ((group.y * groups.x + group.x) * TEAMS + lane / LANES) * EACH;
    // Rows past the last repeat the last row. They are not stored.
    let rows = min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(N_ROWS - 1u));
    var sums0 = Sums();
    var sums1 = Sums();
    var sums2 = Sums();
    var sums3 = Sums();
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * LANES + lane % LANES;
        if VECTORS % LANES == 0u || i < VECTORS {
            sums0 = add_row(sums0, rows.x, i);
            if EACH > 1u {
                sums1 = add_row(sums1, rows.y, i);
                sums2 = add_row(sums2, rows.z, i);
                sums3 = add_row(sums3, rows.w, i);
            }
        }
    }
    finish(row, lane, sums0);
    if EACH > 1u {
        finish(row + 1u, lane, sums1);
        finish(row + 2u, lane, sums2);
        finish(row + 3u, lane, sums3);
    }
}
