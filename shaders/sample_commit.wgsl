// The best of the stretches' best becomes the next token: it is written where the next step's
// embedding lookup reads it, and where the read-back copies from.

@group(0) @binding(0) var<storage, read> best: array<vec2u>;         // [N_STRETCHES]: bits of the value, id
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;   // [chunk]
@group(0) @binding(2) var<storage, read_write> sampled: array<u32>;  // [1]

const WORKGROUP: u32 = 64u;
const NONE: u32 = 0xffffffffu;

var<workgroup> values: array<f32, WORKGROUP>;
var<workgroup> ids: array<u32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var value = 0.0;
    var id = NONE;
    for (var i = lane; i < N_STRETCHES; i += WORKGROUP) {
        let other = bitcast<f32>(best[i].x);
        if best[i].y != NONE && (id == NONE || other > value) {
            value = other;
            id = best[i].y;
        }
    }
    values[lane] = value;
    ids[lane] = id;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            let other = values[lane + half];
            let other_id = ids[lane + half];
            let better = other > values[lane] || (other == values[lane] && other_id < ids[lane]);
            if other_id != NONE && (better || ids[lane] == NONE) {
                values[lane] = other;
                ids[lane] = other_id;
            }
        }
    }
    if lane == 0u {
        tokens[0] = ids[0];
        sampled[0] = ids[0];
    }
}
