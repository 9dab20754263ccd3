// Rows of f16 parted into bytes (see split_f16.wgsl): K upper bytes, then K lower ones.

// What one of a row's LANES lanes adds up of embd[row] · x, eight values at a time like gemv_head.
fn lane_sum(row: u32, lane: u32) -> f32 {
    let upper = row * (K / 4u);
    let lower = upper + K / 8u;
    var sum = 0.0;
    for (var i = lane; i < K / 8u; i += LANES) {
        let u = embd[upper + i];
        let l = embd[lower + i];
        sum = add_eight(sum, i, vec4u(joined(u.x, l.x), joined(u.y, l.y)));
    }
    return sum;
}

