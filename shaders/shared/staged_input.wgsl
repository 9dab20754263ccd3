// Copies the input of packed_slots.wgsl to workgroup memory, if it fits: the lanes then wait once for
// all of it.
//
// The shader declares input_vector(i), of Q_VECTORS; and input_scales(i), of SIXTY_FOURS. It includes
// lanes_subgroup.wgsl or lanes_workgroup.wgsl.
//
// With codes of 1 bit a lane takes 128 values in one step. So that neighbouring lanes still read
// neighbours, the copy has blocks of 1024 values, as [8][8] vectors; and of each two scales the first
// ones come before the second ones.

// Every device has 16 KiB of workgroup memory. The sums need up to 32 bytes for each of PARTIALS.
const OTHER_BYTES: u32 = 32u * PARTIALS + 512u;
const STAGED_VECTORS: u32 = select(Q_VECTORS, (Q_VECTORS + 63u) / 64u * 64u, BITS == 1u);
const STAGED: bool = (STAGED_VECTORS + SIXTY_FOURS) * 16u + OTHER_BYTES <= 16384u;
const VECTORS_EACH: u32 = (Q_VECTORS + WORKGROUP - 1u) / WORKGROUP;  // of a lane
const SCALES_EACH: u32 = (SIXTY_FOURS + WORKGROUP - 1u) / WORKGROUP; // of a lane

var<workgroup> staged_vectors: array<vec4u, select(1u, STAGED_VECTORS, STAGED)>;
var<workgroup> staged_scales: array<vec4f, select(1u, SIXTY_FOURS, STAGED)>;

// Where the copy has the vector `i` of the input. See sixteen_at: a block there is [4][8].
fn copied_vector(i: u32) -> u32 {
    let of_block = i % 32u;
    let row = of_block % 2u * 4u + of_block / 8u;
    return i / 64u * 64u + row * 8u + i / 32u % 2u * 4u + of_block % 8u / 2u;
}

// Where it has the row's scales number `i`.
fn copied_scales(i: u32) -> u32 {
    return i % 2u * UNITS + i / 2u;
}

// The caller has a barrier after it.
fn stage_input(lane: u32) {
    if !STAGED {
        return;
    }
    for (var n = 0u; n < VECTORS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < Q_VECTORS {
            if BITS == 1u {
                staged_vectors[copied_vector(i)] = input_vector(i);
            } else {
                staged_vectors[i] = input_vector(i);
            }
        }
    }
    for (var n = 0u; n < SCALES_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < SIXTY_FOURS {
            if BITS == 1u {
                staged_scales[copied_scales(i)] = input_scales(i);
            } else {
                staged_scales[i] = input_scales(i);
            }
        }
    }
}

fn staged_vector(i: u32) -> vec4u {
    if STAGED {
        return staged_vectors[i];
    }
    return input_vector(i);
}

fn sixty4(i: u32) -> Sixty4 {
    let at = sixteen_at(i * 4u);
    if BITS == 1u && STAGED {
        let copied = copied_vector(at);
        let scales = staged_scales[copied_scales(i)];
        return Sixty4(
            staged_vectors[copied],
            staged_vectors[copied + 8u],
            staged_vectors[copied + 16u],
            staged_vectors[copied + 24u],
            scales.xy,
            scales.zw,
        );
    }
    var scales: vec4f;
    if STAGED {
        scales = staged_scales[i];
    } else {
        scales = input_scales(i);
    }
    return Sixty4(
        staged_vector(at),
        staged_vector(at + 8u),
        staged_vector(at + 16u),
        staged_vector(at + 24u),
        scales.xy,
        scales.zw,
    );
}
