// Attention of few tokens: see attention_of_few.wgsl. All keys and values are in the cache.

@group(0) @binding(0) var<uniform> step: Step;
// [n_tokens, N_HEAD, HEAD_DIM], rotated and scaled
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;
@group(0) @binding(2) var<storage, read> k_cache: array<vec4u>;
@group(0) @binding(3) var<storage, read> v_cache: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> partial_sums: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> partial_max_total: array<vec2f>;

fn make_queries(lane: u32, token: u32, first_head: u32, head_kv: u32, row: Row) {
    // There are at least as many threads as vectors.
    if lane < HEADS * QUADS {
        wq[lane] = queries[(token * N_HEAD + first_head) * QUADS + lane];
    }
}

fn store_newest(lane: u32, first_head: u32, head_kv: u32, row: Row) {}

fn key_words(words: vec4u, vector: u32, is_newest: bool) -> vec4u {
    return words;
}

fn value_of(v: vec4f, quad: u32, is_newest: bool) -> vec4f {
    return v;
}
