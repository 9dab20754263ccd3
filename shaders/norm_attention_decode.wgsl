// Attention of one token, see attention_of_few.wgsl, from the products of its queries, key and
// value. Each workgroup norms and rotates the queries and the key that it needs, as norm_rope_kv
// does. Several workgroups share a KV head. The first of them stores the key and the value, in the
// split that has the token's position. Others may load that position meanwhile, but they do not use
// what they load there. They use newest_key and newest_value instead. The cache is of f16 or f32.

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> qkv: array<vec4f>; // [N_Q + 2 N_KV]
@group(0) @binding(2) var<storage, read> head_norms: array<vec4f>; // [2][HEAD_DIM], of q and of k
@group(0) @binding(3) var<storage, read> rope_table: array<vec4f>; // [n_ctx, HEAD_DIM / 2]: cos, sin
@group(0) @binding(4) var<storage, read_write> k_cache: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> v_cache: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> partial_sums: array<vec4f>;
@group(0) @binding(7) var<storage, read_write> partial_max_total: array<vec2f>;

// The XOR in `turned` takes a power of two.
const_assert QUADS >= 8u && (QUADS & (QUADS - 1u)) == 0u && WORKGROUP >= (HEADS + 2u) * QUADS;

const EIGHTS: u32 = QUADS / 8u;

var<workgroup> products: array<vec4f, (HEADS + 1u) * QUADS>;     // products of the queries and the key
var<workgroup> eight_squares: array<f32, (HEADS + 1u) * EIGHTS>; // sums of the squares of every eight of these
// Four values each, in the form of the cache: two words of f16, or four words of f32.
var<workgroup> newest_key: array<vec4u, QUADS>;
var<workgroup> newest_value: array<vec4u, QUADS>;

fn cached(v: vec4f) -> vec4u {
    if KV_BITS == 16u {
        return vec4u(pack2x16float(v.xy), pack2x16float(v.zw), 0u, 0u);
    }
    return bitcast<vec4u>(v);
}

// The four values number `quad` of a head, normed and rotated, see rotated_head.wgsl. `squares` is
// the sum of the squares of the head.
fn turned(part: u32, quad: u32, squares: f32, pos: u32) -> vec4f {
    let is_query = part < HEADS;
    let scale = inverseSqrt(squares / f32(HEAD_DIM) + EPS)
        * select(1.0, inverseSqrt(f32(HEAD_DIM)), is_query);
    let first_weight = select(QUADS, 0u, is_query);
    // The quad with the other value of each pair.
    let other = quad ^ (QUADS / 2u);
    let v = products[part * QUADS + quad] * scale * head_norms[first_weight + quad];
    let w = products[part * QUADS + other] * scale * head_norms[first_weight + other];
    let at = pos * QUADS + quad % (QUADS / 2u) * 2u;
    let t0 = rope_table[at];
    let t1 = rope_table[at + 1u];
    let cosines = vec4f(t0.x, t0.z, t1.x, t1.z);
    let sines = vec4f(t0.y, t0.w, t1.y, t1.w);
    if quad < QUADS / 2u {
        return fma(v, cosines, -(w * sines));
    }
    return fma(v, cosines, w * sines);
}

fn make_queries(lane: u32, token: u32, first_head: u32, head_kv: u32, row: Row) {
    // A part is a query, the key or the value. Extra lanes repeat the work of the value.
    let part = min(lane / QUADS, HEADS + 1u);
    let quad = lane % QUADS;
    let head_of_kv = N_HEAD + select(N_HEAD_KV, 0u, part == HEADS) + head_kv;
    let v = qkv[select(head_of_kv, first_head + part, part < HEADS) * QUADS + quad];
    let sum = eight_sum_f32(lane, square_of(v));
    if part <= HEADS {
        products[part * QUADS + quad] = v;
        if lane % 8u == 0u {
            eight_squares[lane / 8u] = sum;
        }
    } else {
        newest_value[quad] = cached(v);
    }
    workgroupBarrier();
    if part <= HEADS {
        var squares = 0.0;
        for (var i = 0u; i < EIGHTS; i++) {
            squares += eight_squares[part * EIGHTS + i];
        }
        let r = turned(part, quad, squares, row.pos);
        if part < HEADS {
            wq[part * QUADS + quad] = r;
        } else {
            newest_key[quad] = cached(r);
        }
    }
}

fn key_words(words: vec4u, vector: u32, is_newest: bool) -> vec4u {
    if !is_newest {
        return words;
    }
    if KV_BITS == 16u {
        return vec4u(newest_key[2u * vector].xy, newest_key[2u * vector + 1u].xy);
    }
    return newest_key[vector];
}

fn value_of(v: vec4f, quad: u32, is_newest: bool) -> vec4f {
    if !is_newest {
        return v;
    }
    if KV_BITS == 16u {
        return four_f16(newest_value[quad].xy);
    }
    return bitcast<vec4f>(newest_value[quad]);
}

fn store_newest(lane: u32, first_head: u32, head_kv: u32, row: Row) {
    if first_head % (N_HEAD / N_HEAD_KV) != 0u {
        return;
    }
    let position = row.first + row.pos;
    if lane < VECTORS {
        k_cache[position * (KV_ROW / 4u) + head_kv * VECTORS + lane] = key_words(vec4u(), lane, true);
    }
    if lane < QUADS {
        let at = pair_of(position, head_kv, lane);
        v_cache[at] = newest_value[lane].xy;
        if KV_BITS == 32u {
            v_cache[at + 1u] = newest_value[lane].zw;
        }
    }
}
