// The weight of a norm, if NORM. The kernel declares norm_weight [K]. See normed_input.wgsl.

fn weight(i: u32) -> vec4f {
    if NORM {
        return norm_weight[i];
    }
    return vec4f(1.0);
}
