// x[t] = EMBEDDING_SCALE * embd[tokens[t]], for the tokens whose row is in this shard of the embedding.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
// [N_ROWS, K] f16, f16 split into bytes, or f32
@group(0) @binding(2) var<storage, read> embd: array<u32>;
// [n_vocab], of split f16
@group(0) @binding(3) var<storage, read> shifts: array<u32>;
// [n_tokens, K]
@group(0) @binding(4) var<storage, read_write> x: array<vec2f>;

const PAIRS: u32 = K / 2u; // in a row

// Pair `i` of a row.
fn pair(row: u32, i: u32) -> vec2f {
    let first = row * PAIRS;
    if SPLIT {
        let at = first + i / 2u;
        let halves = joined(embd[at], embd[at + K / 4u], shifts[FIRST_ROW + row]);
        return unpack2x16float(select(halves.x, halves.y, i % 2u == 1u));
    }
    if F16 {
        return unpack2x16float(embd[first + i]);
    }
    return bitcast<vec2f>(vec2u(embd[2u * (first + i)], embd[2u * (first + i) + 1u]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // A token below FIRST_ROW wraps around, so it is above N_ROWS too.
    let row = tokens[row_of(group.x).token] - FIRST_ROW;
    if row >= N_ROWS {
        return;
    }
    for (var n = 0u; n < (PAIRS + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        if i < PAIRS {
            x[group.x * PAIRS + i] = EMBEDDING_SCALE * pair(row, i);
        }
    }
}
