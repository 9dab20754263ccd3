// Norms a head of q or k, rotates it by position, scales q by 1 / sqrt(HEAD_DIM), and stores it.
// Stores a head of v as it is. Kernels of one token and of several give the same bits, so every
// operation that a compiler could fuse with another is explicit.
//
// The kernel declares head_norms, `array<f32>` [2][HEAD_DIM], of q and of k; rope_table,
// `array<vec2f>` [n_ctx, HEAD_DIM / 2]: cos, sin; and all that store_head.wgsl asks for. It
// includes eights_subgroup.wgsl or eights_workgroup.wgsl.

const QUADS: u32 = HEAD_DIM / 4u;

const EIGHTS: u32 = (QUADS + 7u) / 8u;

var<workgroup> head_values: array<vec4f, QUADS>;
var<workgroup> eight_squares: array<f32, EIGHTS>; // the sum of every eight of these

// The weights and angles for the values i, i + 1, i + HALF and i + HALF + 1 of a head.
struct Rotation {
    weights: vec4f,
    t0: vec2f, // cos and sin of the first pair
    t1: vec2f,
}

fn rotation_of(head: u32, token: u32, i: u32) -> Rotation {
    let at = select(0u, HEAD_DIM, head >= N_HEAD) + i;
    let at_pair = row_of(token).pos * HALF + i;
    return Rotation(
        vec4f(
            head_norms[at],
            head_norms[at + 1u],
            head_norms[at + HALF],
            head_norms[at + HALF + 1u],
        ),
        rope_table[at_pair],
        rope_table[at_pair + 1u],
    );
}

fn two_values(i: u32) -> vec2f {
    let four = head_values[i / 4u];
    return select(four.xy, four.zw, i % 4u == 2u);
}

// The sum of the squares of head_values. The whole workgroup calls it.
fn squares_of_head(lane: u32) -> f32 {
    for (var n = 0u; n < (QUADS + WORKGROUP - 1u) / WORKGROUP; n++) {
        let i = n * WORKGROUP + lane;
        let square = square_of(head_values[min(i, QUADS - 1u)]);
        let sum = eight_sum_f32(lane, select(0.0, square, i < QUADS));
        if i < QUADS && i % 8u == 0u {
            eight_squares[i / 8u] = sum;
        }
    }
    workgroupBarrier();
    var squares = 0.0;
    for (var i = 0u; i < EIGHTS; i++) {
        squares += eight_squares[i];
    }
    return squares;
}

// Norms, rotates and stores the values i, i + 1, i + HALF and i + HALF + 1 of head_values.
// Afterwards the kernel calls finish_head of store_head.wgsl.
fn store_rotated(head: u32, token: u32, i: u32, squares: f32, rotation: Rotation) {
    var v = Pairs(two_values(i), two_values(i + HALF));
    if head < N_HEAD + N_HEAD_KV {
        let scale = inverseSqrt(squares / f32(HEAD_DIM) + EPS)
            * select(1.0, inverseSqrt(f32(HEAD_DIM)), head < N_HEAD);
        let normed =
            Pairs(v.first * scale * rotation.weights.xy, v.second * scale * rotation.weights.zw);
        v = both_rotated(normed, rotation.t0, rotation.t1);
    }
    store_pairs(head, token, i, v);
}
