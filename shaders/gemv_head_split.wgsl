// logits[row] = embd[row] · x, for the rows of one shard of an embedding of f16 parted into bytes. The
// same logits, to the bit, as gemv_head's of the f16 it was.

@group(0) @binding(0) var<storage, read> embd: array<vec2u>;       // [N_ROWS, 2, K] bytes
@group(0) @binding(1) var<storage, read> x: array<vec4f>;          // [K]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [n_vocab]

