// Prologue: the input is one row of floats, normed if NORM. See normed_input.wgsl.

@group(0) @binding(PROLOGUE_AT) var<storage, read> x: array<vec4f>;                // [K]
@group(0) @binding(PROLOGUE_AT + 1u) var<storage, read> norm_weight: array<vec4f>; // [K]

fn input(token: u32, i: u32) -> Input {
    return Input(x[i], x[i + 8u], x[i + 16u], x[i + 24u]);
}
