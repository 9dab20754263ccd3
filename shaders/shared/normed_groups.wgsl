// A whole workgroup norms one row and quantises it to int8 with a scale for each 32: see
// quantize_group.wgsl. A thread takes a group, or several. All kernels that norm a row so give the
// same bits.
//
// The kernel declares x, `array<vec4f>` [n_tokens, K]; norm_weight, `array<vec4f>` [K]; and put(token,
// group, first sixteen, second sixteen, scale and sum).

const GROUPS: u32 = K / 32u;
const GROUPS_EACH: u32 = (GROUPS + WORKGROUP - 1u) / WORKGROUP; // of a thread

fn square_of(v: vec4f) -> f32 {
    return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, v.x * v.x)));
}

fn norm_groups(token: u32, lane: u32) {
    var h: array<vec4f, GROUPS_EACH * 8u>;
    var squares = 0.0;
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * WORKGROUP + lane;
        if group < GROUPS {
            for (var i = 0u; i < 8u; i++) {
                let v = x[token * (K / 4u) + group * 8u + i];
                squares += square_of(v);
                h[n * 8u + i] = v * norm_weight[group * 8u + i];
            }
        }
    }
    let scale = inverseSqrt(group_sum_max(lane, vec2f(squares, 0.0)).x / f32(K) + EPS);
    for (var n = 0u; n < GROUPS_EACH; n++) {
        let group = n * WORKGROUP + lane;
        if group < GROUPS {
            // The scale of the norm is common to the group, so it does not change the codes.
            var largest = 0.0;
            for (var i = 0u; i < 8u; i++) {
                largest = max(largest, largest_of(h[n * 8u + i]));
            }
            let per = per_scale(largest);
            var words: array<u32, 8>;
            var sum = vec4i();
            for (var i = 0u; i < 8u; i++) {
                let v = rounded(h[n * 8u + i], per);
                words[i] = packed_bytes(v);
                sum += v;
            }
            let s = largest / 127.0 * scale;
            put(
                token,
                group,
                vec4u(words[0], words[1], words[2], words[3]),
                vec4u(words[4], words[5], words[6], words[7]),
                vec2f(s, s * f32(sum.x + sum.y + sum.z + sum.w)),
            );
        }
    }
}
