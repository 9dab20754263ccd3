// Copies the input of packed_slots.wgsl to workgroup memory, if it fits: the lanes then wait once for
// all of it.
//
// The shader declares input_vector(i), of Q_VECTORS; and input_scales(unit), of UNITS. It includes
// lanes_subgroup.wgsl or lanes_workgroup.wgsl.

// Every device has 16 KiB of workgroup memory. The sums need up to 32 bytes for each of PARTIALS.
const OTHER_BYTES: u32 = 32u * PARTIALS + 512u;
const STAGED: bool = (Q_VECTORS + UNITS) * 16u + OTHER_BYTES <= 16384u;
const VECTORS_EACH: u32 = (Q_VECTORS + WORKGROUP - 1u) / WORKGROUP; // of a lane
const SCALES_EACH: u32 = (UNITS + WORKGROUP - 1u) / WORKGROUP;      // of a lane

var<workgroup> staged_vectors: array<vec4u, select(1u, Q_VECTORS, STAGED)>;
var<workgroup> staged_scales: array<vec4f, select(1u, UNITS, STAGED)>;

// The caller has a barrier after it.
fn stage_input(lane: u32) {
    if !STAGED {
        return;
    }
    for (var n = 0u; n < VECTORS_EACH; n++) {
        let i = n * WORKGROUP + lane;
        if i < Q_VECTORS {
            staged_vectors[i] = input_vector(i);
        }
    }
    for (var n = 0u; n < SCALES_EACH; n++) {
        let unit = n * WORKGROUP + lane;
        if unit < UNITS {
            staged_scales[unit] = input_scales(unit);
        }
    }
}

fn staged_vector(i: u32) -> vec4u {
    if STAGED {
        return staged_vectors[i];
    }
    return input_vector(i);
}

fn sixty4(unit: u32) -> Sixty4 {
    let at = sixteen_at(unit * 4u);
    var scales: vec4f;
    if STAGED {
        scales = staged_scales[unit];
    } else {
        scales = input_scales(unit);
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
