// u[t][row] = factor[row] * a[row] · h[t], where h[t] is the norm of a token's input, or the input as it is
// without NORM. With LAST, the only token is the last of the step. A workgroup computes four rows for TOKENS
// tokens. It reads the input once: the norm is only a factor, so the squares are summed beside the products.
//
// A token must give the same bits alone and among others. So every operation that a compiler could fuse
// with another is explicit, and all steps have the same LANES.
//
// The kernel declares step; a, `array<vec2u>` [ROWS, K] f16; factor, `array<vec4f>` [ROWS / 4]; u,
// `array<vec4f>` [n_tokens, ROWS / 4]; weight(i), see norm_weight.wgsl; and input_four(token, i), the
// vector i of a token's input.

const FOURS: u32 = K / 4u; // vectors of a row
const FOURS_EACH: u32 = (FOURS + WORKGROUP - 1u) / WORKGROUP; // of a lane

const_assert LANES == WORKGROUP && ROWS % 4u == 0u;

fn add_products(sum: f32, a: vec2u, h: vec4f) -> f32 {
    let low = unpack2x16float(a.x);
    let high = unpack2x16float(a.y);
    return fma(high.y, h.w, fma(high.x, h.z, fma(low.y, h.y, fma(low.x, h.x, sum))));
}

fn add_squares(sum: f32, x: vec4f) -> f32 {
    return fma(x.w, x.w, fma(x.z, x.z, fma(x.y, x.y, fma(x.x, x.x, sum))));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * 4u;
    let first_token = group.y * TOKENS;
    let n_tokens = select(step.n_tokens, 1u, LAST);
    var sums: array<vec4f, TOKENS>;
    var squares: array<f32, TOKENS>;
    for (var n = 0u; n < FOURS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < FOURS {
            let a0 = a[first * FOURS + i];
            let a1 = a[(first + 1u) * FOURS + i];
            let a2 = a[(first + 2u) * FOURS + i];
            let a3 = a[(first + 3u) * FOURS + i];
            let w = weight(i);
            for (var t = 0u; t < TOKENS; t++) {
                let last = step.n_tokens - 1u;
                let x = input_four(select(min(first_token + t, last), last, LAST), i);
                let h = x * w;
                sums[t] = vec4f(
                    add_products(sums[t].x, a0, h),
                    add_products(sums[t].y, a1, h),
                    add_products(sums[t].z, a2, h),
                    add_products(sums[t].w, a3, h),
                );
                squares[t] = add_squares(squares[t], x);
            }
        }
    }
    for (var t = 0u; t < TOKENS; t++) {
        let token = first_token + t;
        let sum = lanes_sum_vec4f(lane, sums[t]);
        var scale = 1.0;
        if NORM {
            scale = inverseSqrt(lanes_sum_f32(lane, squares[t]) / f32(K) + EPS);
        }
        if lane == 0u && token < n_tokens {
            u[token * (ROWS / 4u) + group.x] = sum * scale * factor[group.x];
        }
    }
}
