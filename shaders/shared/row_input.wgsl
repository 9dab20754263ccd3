// The input of normed_input.wgsl is a row of x [n_tokens, K], which the kernel declares.

fn input(token: u32, i: u32) -> Input {
    let at = token * (K / 4u) + i;
    return Input(x[at], x[at + 8u], x[at + 16u], x[at + 24u]);
}
