// Prologue: every workgroup merges the splits of attention, and norms the outputs if NORM. See
// merged_input.wgsl and normed_input.wgsl.

// [n_splits, N_HEAD, HEAD_DIM]
@group(0) @binding(PROLOGUE_AT) var<storage, read> partial_sums: array<vec4f>;
// [n_splits, N_HEAD]: largest score, sum of exp
@group(0) @binding(PROLOGUE_AT + 1u) var<storage, read> partial_max_total: array<vec2f>;
@group(0) @binding(PROLOGUE_AT + 2u) var<storage, read> norm_weight: array<vec4f>; // [K]
