// Y = FACTOR * W X for TOKENS tokens at a time. LANES lanes share a row, and each word of codes is
// read once for all of these tokens. See rows_of_tokens.wgsl.
//
// The kernel declares step; y [n_tokens, ALL_ROWS]; add_unit(sum, token, row, unit, codes of the
// unit), which adds the products of a unit with a token; and input_factor(token), which multiplies
// all products with the token. All kernels that compute a row give the same bits, for one token and
// for many. So every operation that a compiler could fuse with another is explicit.

alias Sum = vec4f;

fn finished(sum: f32, token: u32, row: u32, matrix: u32) -> f32 {
    return input_factor(token) * sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (group.z * groups.x + group.x) * ROWS;
    let team = lane / LANES; // each team computes one row of one matrix
    let matrix = team / ROWS;
    let row = first + team % ROWS;
    let token = group.y * TOKENS;
    var sum = vec4f(); // one sum for each token; those past the last are ignored
    if row < N_ROWS {
        let in_shard = matrix * N_ROWS + row;
        for (var at_step = 0u; at_step < STEPS; at_step++) {
            let unit = at_step * LANES + lane % LANES;
            if UNITS % LANES == 0u || unit < UNITS {
                let at = (in_shard * UNITS + unit) * VECTORS;
                let a = w[at];
                let b = w[at + VECTORS - 1u];
                sum.x = add_unit(sum.x, token, in_shard, unit, a, b);
                if TOKENS > 1u {
                    sum.y = add_unit(sum.y, token + 1u, in_shard, unit, a, b);
                    sum.z = add_unit(sum.z, token + 2u, in_shard, unit, a, b);
                    sum.w = add_unit(sum.w, token + 3u, in_shard, unit, a, b);
                }
            }
        }
    }
    var v = vec4f();
    if TOKENS > 1u {
        v = lanes_sum_vec4f(lane, sum);
    } else {
        v.x = lanes_sum_f32(lane, sum.x);
    }
    store_rows(lane, first, token, v);
}
