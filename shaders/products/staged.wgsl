// Copies the input of packed.wgsl to workgroup memory, if it fits: the lanes then wait once for all of it.
//
// The prologue declares input_vector(i), of Q_VECTORS; and input_scales(i), of SIXTY_FOURS.

// Every device has 16 KiB of workgroup memory. The sums need up to 32 bytes for each of PARTIALS.
const OTHER_BYTES: u32 = 32u * PARTIALS + 512u;
const STAGED: bool = (COPIED_VECTORS + SIXTY_FOURS) * 16u + OTHER_BYTES <= 16384u;
const VECTORS_EACH: u32 = (Q_VECTORS + WORKGROUP - 1u) / WORKGROUP;  // of a lane
const SCALES_EACH: u32 = (SIXTY_FOURS + WORKGROUP - 1u) / WORKGROUP; // of a lane

var<workgroup> staged_vectors: array<vec4u, select(1u, COPIED_VECTORS, STAGED)>;
var<workgroup> staged_scales: array<vec4f, select(1u, SIXTY_FOURS, STAGED)>;

// The caller has a barrier after it.
fn stage_input(lane: u32) {
    if !STAGED {
        return;
    }
    for (var n = 0u; n < VECTORS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < Q_VECTORS {
            staged_vectors[copied_vector(i)] = input_vector(i);
        }
    }
    for (var n = 0u; n < SCALES_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < SIXTY_FOURS {
            staged_scales[copied_scales(i)] = input_scales(i);
        }
    }
}

fn sixty4(i: u32) -> Sixty4 {
    let at = sixteen_at(i * 4u);
    if STAGED {
        let first = copied_vector(at);
        let scales = staged_scales[copied_scales(i)];
        return Sixty4(
            staged_vectors[first],
            staged_vectors[first + 8u],
            staged_vectors[first + 16u],
            staged_vectors[first + 24u],
            scales.xy,
            scales.zw,
        );
    }
    let scales = input_scales(i);
    return Sixty4(
        input_vector(at),
        input_vector(at + 8u),
        input_vector(at + 16u),
        input_vector(at + 24u),
        scales.xy,
        scales.zw,
    );
}
