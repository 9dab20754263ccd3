// x[t] = embd[token[t]], for the tokens whose row is in this shard of the embedding.

@group(0) @binding(0) var<storage, read> tokens: array<u32>;
@group(0) @binding(1) var<storage, read> embd: array<u32>;      // [N_ROWS, N_EMBD] f16, f16 parted into bytes, or f32
@group(0) @binding(2) var<storage, read_write> x: array<vec2f>; // [n_tokens, N_EMBD]

// Two neighbours of a row that begins at word `first`.
fn pair(first: u32, i: u32) -> vec2f {
    if SPLIT {
        let at = first + i / 2u;
        let halves = joined(embd[at], embd[at + N_EMBD / 4u]);
        return unpack2x16float(select(halves.x, halves.y, i % 2u == 1u));
    }
    return unpack2x16float(embd[first + i]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // Wraps below FIRST_ROW, which is then beyond N_ROWS too.
    let row = tokens[group.x] - FIRST_ROW;
    if row >= N_ROWS {
        return;
    }
    for (var i = lane; i < N_EMBD / 2u; i += WORKGROUP) {
        let at = row * (N_EMBD / 2u) + i;
        if F16 {
            x[group.x * (N_EMBD / 2u) + i] = pair(row * (N_EMBD / 2u), i);
        } else {
            x[group.x * (N_EMBD / 2u) + i] = bitcast<vec2f>(vec2u(embd[2u * at], embd[2u * at + 1u]));
        }
    }
}
