// x[t] = EMBEDDING_SCALE * embd[tokens[t]], for the tokens whose row is in one of these shards of
// the embedding. There are up to five shards, see shards.wgsl.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
// [N_ROWS, K] f16, f16 split into bytes, or f32
@group(0) @binding(2) var<storage, read> embd: array<u32>;
// [n_vocab], used with split f16
@group(0) @binding(3) var<storage, read> shifts: array<u32>;
// [n_tokens, K]
@group(0) @binding(4) var<storage, read_write> x: array<vec2f>;
// the other shards
@group(0) @binding(5) var<storage, read> embd_1: array<u32>;
@group(0) @binding(6) var<storage, read> embd_2: array<u32>;
@group(0) @binding(7) var<storage, read> embd_3: array<u32>;
@group(0) @binding(8) var<storage, read> embd_4: array<u32>;

const PAIRS: u32 = K / 2u; // pairs of values in a row

// The index of the shard that has a row, and the shard's first row.
fn shard_of(row: u32) -> vec2u {
    if row < SHARD_1 {
        return vec2u(0u, 0u);
    }
    if row < SHARD_2 {
        return vec2u(1u, SHARD_1);
    }
    if row < SHARD_3 {
        return vec2u(2u, SHARD_2);
    }
    return select(vec2u(4u, SHARD_4), vec2u(3u, SHARD_3), row < SHARD_4);
}

fn word(shard: u32, at: u32) -> u32 {
    switch shard {
        case 1u: {
            return embd_1[at];
        }
        case 2u: {
            return embd_2[at];
        }
        case 3u: {
            return embd_3[at];
        }
        case 4u: {
            return embd_4[at];
        }
        default: {
            return embd[at];
        }
    }
}

// Pair `i` of a row.
fn pair(row: u32, i: u32) -> vec2f {
    let shard = shard_of(row);
    let first = (row - shard.y) * PAIRS;
    if SPLIT {
        let at = first + i / 2u;
        let halves =
            joined(word(shard.x, at), word(shard.x, at + K / 4u), shifts[FIRST_ROW + row]);
        return unpack2x16float(select(halves.x, halves.y, i % 2u == 1u));
    }
    if F16 {
        return unpack2x16float(word(shard.x, first + i));
    }
    let at = 2u * (first + i);
    return bitcast<vec2f>(vec2u(word(shard.x, at), word(shard.x, at + 1u)));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // If a token is below FIRST_ROW, this wraps around, so the result is above N_ROWS too.
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
