// Rows of f16 that are split into bytes (see split_f16.wgsl): K upper bytes, then K lower ones. The
// kernel declares eight_bytes(i), the vector i of a shard.

const EIGHTS: u32 = K / 8u; // vectors of eight bytes in a row
const STEPS: u32 = (EIGHTS + LANES - 1u) / LANES;

// One lane's part of the logit of the token `id`, which is the row `row` of the shard. It is summed
// in the order of gemv_lm_head. LANES lanes share a row.
fn split_sum(row: u32, id: u32, lane: u32) -> f32 {
    let upper = row * (2u * EIGHTS);
    let lower = upper + EIGHTS;
    let shift = shifts[id];
    var sum = 0.0;
    // Drivers unroll a constant number of steps without branches, so that all loads are in flight
    // together. Therefore the few rows that have a shift take a loop of their own.
    if shift == 0u {
        for (var at_step = 0u; at_step < STEPS; at_step++) {
            let i = at_step * LANES + lane;
            if EIGHTS % LANES == 0u || i < EIGHTS {
                let u = eight_bytes(upper + i);
                let l = eight_bytes(lower + i);
                sum = add_eight(sum, i, vec4u(joined_halves(u.x, l.x), joined_halves(u.y, l.y)));
            }
        }
        return sum;
    }
    for (var at_step = 0u; at_step < STEPS; at_step++) {
        let i = at_step * LANES + lane;
        if EIGHTS % LANES == 0u || i < EIGHTS {
            let u = eight_bytes(upper + i);
            let l = eight_bytes(lower + i);
            sum = add_eight(sum, i, vec4u(joined(u.x, l.x, shift), joined(u.y, l.y, shift)));
        }
    }
    return sum;
}

